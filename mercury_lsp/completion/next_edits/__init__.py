"""The user's last change, offered for other places of the document, one at a time; the model judges each."""

from mercury_lsp.completion.next_edits.next_edits import NextEdits

__all__ = ["NextEdits"]
