"""A user whose last change in a document is offered elsewhere in it."""

from textwrap import dedent

from lsprotocol import types

from mercury_lsp.completion.next_edits.edit_sites import EditSite
from mercury_lsp.completion.next_edits.repeatable_edits import RepeatableEdits
from mercury_lsp.documents.document import Document

RENAMED = """\
    def f(count):
        x = count + 1
        return count

    def g(count):
        return count
"""
"""A document with the local name `count` in two functions."""


class NextEditDesk:
    """A user who edits a document, and its repeatable edits."""

    def __init__(self, text: str, language: str = "python"):
        self.document = Document("file:///a", language, 1, dedent(text))
        self.repeatable = RepeatableEdits()

    @property
    def text(self) -> str:
        return self.document.parsed().text

    def find(self, text: str, number: int = 0) -> int:
        at = -1
        for _ in range(number + 1):
            at = self.text.index(text, at + 1)
        return at

    def put(self, start: int, removed: str, inserted: str) -> None:
        snapshot = self.document.parsed()
        start, end = (types.Position(*snapshot.position_at(at)) for at in (start, start + len(removed)))
        change = types.TextDocumentContentChangePartial(types.Range(start, end), inserted)
        self.repeatable.record(self.document.apply([change], 1))

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

    def change(self) -> tuple[str, str] | None:
        """Old and new text of the change that may be repeated."""
        found = self.repeatable.replacement(self.document.parsed())
        return (found.old, found.new) if found else None

    def lines(self) -> list[int]:
        """Line numbers of the sites that are found."""
        return [self.document.parsed().position_at(each.start)[0] for each in self._sites()]

    def texts(self) -> list[tuple[str, str]]:
        """Old and new text of the sites that are found."""
        return [(each.old, each.new) for each in self._sites()]

    def must_go_on(self) -> bool:
        found = self.repeatable.replacement(self.document.parsed())
        return found is not None and self.repeatable.must_go_on(found, self.document.parsed())

    def is_unfinished(self, cursor: int) -> bool:
        found = self.repeatable.replacement(self.document.parsed())
        return found is None or self.repeatable.is_unfinished(cursor)

    def _sites(self) -> list[EditSite]:
        found = self.repeatable.replacement(self.document.parsed())
        return self.repeatable.sites(found, self.document.parsed()) if found else []
