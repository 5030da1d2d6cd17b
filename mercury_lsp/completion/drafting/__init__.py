"""Text that a canvas may start from: what is left of an earlier suggestion, or a similar line of open documents."""

from mercury_lsp.completion.drafting.index import DraftIndex
from mercury_lsp.completion.drafting.old_suggestion import old_suggestion

__all__ = ["DraftIndex", "old_suggestion"]
