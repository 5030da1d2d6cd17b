"""Context from other files: declarations and code of imported files, and where other documents were last edited.

`Workspace` runs on the event loop and chooses the snippets of a request. `Library` runs on one background thread
(background.py): it finds the workspace's files (ignored.py), follows imports (imports.py), cuts files into snippets
(snippets.py) and delivers `PreparedSnippets`.
"""

from mercury_lsp.context.workspace.ignored import IGNORE_FILES, is_ignored
from mercury_lsp.context.workspace.imports import SOURCE_EXTENSIONS
from mercury_lsp.context.workspace.secret_files import is_secret
from mercury_lsp.context.workspace.workspace import Workspace

__all__ = ["IGNORE_FILES", "SOURCE_EXTENSIONS", "Workspace", "is_ignored", "is_secret"]
