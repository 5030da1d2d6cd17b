"""A user whose last change in a document is offered elsewhere in it."""

from textwrap import dedent

from lsprotocol import types

from mercury_lsp.completion.next_edits.history import History
from mercury_lsp.completion.next_edits.renaming import Renamings
from mercury_lsp.completion.suggestions import Renaming
from mercury_lsp.context.open_documents import OpenDocuments
from mercury_lsp.documents.document import Edit, Snapshot

RENAMED = """\
    def f(count):
        x = count + 1
        return count

    def g(count):
        return count
"""
"""A document with the local name `count` in two functions."""


URI = "file:///a"


class NextEditDesk:
    """A user who edits a document, and its renamings."""

    def __init__(self, text: str, language: str = "python"):
        self.documents = OpenDocuments()
        self.documents.open(types.TextDocumentItem(URI, language, 1, dedent(text)))
        self.history = History(self.documents)
        self.renamings = Renamings()

    @property
    def snapshot(self) -> Snapshot:
        return self.documents.parsed(URI)

    @property
    def text(self) -> str:
        return self.snapshot.text

    def find(self, text: str, number: int = 0) -> int:
        at = -1
        for _ in range(number + 1):
            at = self.text.index(text, at + 1)
        return at

    def put(self, start: int, removed: str, inserted: str) -> None:
        span = types.Range(*(types.Position(*self.snapshot.position_at(at)) for at in (start, start + len(removed))))
        edits = self.documents.change(URI, 1, [types.TextDocumentContentChangePartial(span, inserted)])
        assert edits is not None
        self.history.record(URI, edits)
        self.renamings.record(edits)

    def replace(self, old: str, new: str, number: int = 0) -> "NextEditDesk":
        self.put(self.find(old, number), old, new)
        return self

    def type(self, at: int, text: str) -> "NextEditDesk":
        for number, key in enumerate(text):
            self.put(at + number, "", key)
        return self

    def erase(self, start: int, count: int) -> "NextEditDesk":
        for end in range(start + count, start, -1):
            self.put(end - 1, self.text[end - 1], "")
        return self

    def renaming(self) -> Renaming | None:
        back = self.history.taken_back
        return self.renamings.under_way(self.snapshot, self.history.changes(URI), back and back[1])

    def change(self) -> tuple[str, str] | None:
        """Old and new text of the renaming under way."""
        found = self.renaming()
        return (found.old, found.new) if found else None

    def lines(self) -> list[int]:
        """Line numbers of the places that are left."""
        return [self.snapshot.position_at(each.start)[0] for each in self._left()]

    def texts(self) -> list[tuple[str, str]]:
        """Old and new text of the places that are left."""
        return [(each.removed, each.inserted) for each in self._left()]

    def must_go_on(self) -> bool:
        found = self.renaming()
        return found is not None and found.must_go_on

    def is_unfinished(self, cursor: int) -> bool:
        self.renaming()
        return self.renamings.is_unfinished(cursor)

    def _left(self) -> tuple[Edit, ...]:
        found = self.renaming()
        return found.left if found else ()
