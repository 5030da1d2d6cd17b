"""Remembers the offered edits of one connection, and does not offer an applied or dismissed one again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mercury_lsp.completion.next_edits.edits import moved_offset
from mercury_lsp.documents.document import Edit

ENTRIES_KEPT = 64
"""Most edits remembered that are not offered again."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A proposed edit of a document, which later edits move."""

    uri: str
    proposed: Edit

    def is_touched_by(self, uri: str, edit: Edit) -> bool:
        """Whether an edit of a document overlaps or touches it."""
        return self.uri == uri and edit.start <= self.proposed.end and edit.end >= self.proposed.start

    def moved(self, uri: str, edit: Edit) -> "Entry":
        """The entry after an edit of a document; an edit at its start does not move it."""
        if self.uri != uri or edit.start >= self.proposed.start:
            return self
        return Entry(uri, replace(self.proposed, start=moved_offset(self.proposed.start, edit)))


class Ledger:
    """The offers of one connection; used on the event loop's thread only."""

    def __init__(self) -> None:
        self._offered: tuple[Entry, ...] = ()
        """The places of the last offer."""
        self._ids: tuple[str, ...] = ()
        """Its suggestion ids: requests for ghost text and for a next edit may both find it."""
        self._declined: list[Entry] = []
        """Edits that were dismissed or touched by another, because the offer was accepted or overwritten."""

    def offer(self, suggestion_id: str, uri: str, edits: Sequence[Edit]) -> None:
        """Record an offer; an earlier one that was neither edited nor dismissed may be offered again."""
        offered = tuple(Entry(uri, each) for each in edits)
        self._ids = (*(self._ids if offered == self._offered else ()), suggestion_id)[-ENTRIES_KEPT:]
        self._offered = offered

    def edited(self, uri: str, edits: Sequence[Edit]) -> None:
        """The user edited a document."""
        for edit in edits:
            if any(each.is_touched_by(uri, edit) for each in self._offered):
                self._decline()
            self._declined = [each.moved(uri, edit) for each in self._declined]
            self._offered = tuple(each.moved(uri, edit) for each in self._offered)

    def dismiss(self, suggestion_id: str) -> None:
        """Do not offer this edit at these places again."""
        if suggestion_id in self._ids:
            self._decline()

    def _decline(self) -> None:
        self._declined = [*self._declined, *self._offered][-ENTRIES_KEPT:]
        self._offered = self._ids = ()

    def is_declined(self, uri: str, edit: Edit) -> bool:
        """Whether the user dismissed this edit in this place or took it back."""
        return Entry(uri, edit) in self._declined
