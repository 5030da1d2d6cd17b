"""A user who edits open documents beside a draft index."""

from lsprotocol import types

from mercury_lsp.completion.drafting import DraftIndex
from mercury_lsp.context.open_documents import OpenDocuments

URI = "file:///sample.py"
FAR = "".join(f"unrelated_{n} = {n}\n" for n in range(120))
"""Enough lines that what stands above them is not near the cursor below them."""


class DraftDesk:
    """Open documents and the draft index that follows their edits."""

    def __init__(self, budget: int = 10_000_000):
        self.documents = OpenDocuments()
        self.index = DraftIndex(budget)

    def open(self, text: str, uri: str = URI, work: bool = True) -> None:
        self.documents.open(types.TextDocumentItem(uri, "plaintext", 1, text))
        self.index.update(self.documents.snapshot(uri))
        if work:
            self.work()

    def work(self) -> None:
        while self.index.pending:
            self.index.work()

    def replace(self, start: int, end: int, text: str, uri: str = URI) -> None:
        """Edit by offsets."""
        old = self.documents.snapshot(uri)
        span = types.Range(types.Position(*old.position_at(start)), types.Position(*old.position_at(end)))
        change = types.TextDocumentContentChangePartial(span, text)
        self.index.edited(uri, self.documents.change(uri, old.version + 1, [change]))
        self.index.update(self.documents.snapshot(uri))

    def replace_all(self, text: str, uri: str = URI) -> None:
        change = types.TextDocumentContentChangeWholeDocument(text)
        version = self.documents.snapshot(uri).version + 1
        self.index.edited(uri, self.documents.change(uri, version, [change]))
        self.index.update(self.documents.snapshot(uri))

    def text(self, uri: str = URI) -> str:
        return self.documents.snapshot(uri).text

    def draft(self, offset: int, uri: str = URI) -> str:
        position = types.Position(*self.documents.snapshot(uri).position_at(offset))
        return self.index.draft(self.documents.context_at(uri, position)[0])
