"""Context beyond the file: what other files of the workspace declare, and where they were edited."""

from mercury_lsp.context.workspace.ignored import IGNORE_FILES, is_secret
from mercury_lsp.context.workspace.imports import SOURCE_EXTENSIONS
from mercury_lsp.context.workspace.workspace import Workspace

__all__ = ["IGNORE_FILES", "SOURCE_EXTENSIONS", "Workspace", "is_secret"]
