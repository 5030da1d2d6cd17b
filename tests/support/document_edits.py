"""Edits of a document as a client would send them."""

from lsprotocol import types

from mercury_lsp.documents.document import Document


def type_at(document: Document, offset: int, text: str) -> None:
    """Insert a text, as the next version of the document."""
    position = types.Position(*document.snapshot().position_at(offset))
    change = types.TextDocumentContentChangePartial(range=types.Range(start=position, end=position), text=text)
    document.apply([change], document.version + 1)
