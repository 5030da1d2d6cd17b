"""Edits of a document as a client would send them."""

from lsprotocol import types

from mercury_lsp.documents.document import Document


def type_at(document: Document, offset: int, text: str) -> None:
    """Insert a text, as the next version of the document."""
    put(document, offset, offset, text)


def put(document: Document, start: int, end: int, text: str) -> None:
    """Replace the text at [start, end), as the next version of the document."""
    first, last = (types.Position(*document.snapshot().position_at(at)) for at in (start, end))
    change = types.TextDocumentContentChangePartial(range=types.Range(start=first, end=last), text=text)
    document.apply([change], document.version + 1)
