"""Drafts for the canvas: the rest of an earlier suggestion, or the continuation of a similar line in an open document.

`DraftIndex` (index.py) keeps the lines of open documents (lines.py) up to date (tracking.py, changed_range.py), matches
them with the line under the cursor (matching.py, renaming.py) and ranks the candidates (choice.py). `old_suggestion`
aligns an abandoned suggestion with the text typed instead.
"""

from mercury_lsp.completion.drafting.index import DraftIndex
from mercury_lsp.completion.drafting.old_suggestion import old_suggestion

__all__ = ["DraftIndex", "old_suggestion"]
