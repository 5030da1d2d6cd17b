"""The question for a next edit, the edits that rules propose, and what became of those that were offered."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from mercury_lsp.completion.next_edits.edits import joined, moved_offset
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.silence import Silence
from mercury_lsp.completion.suggestions import Renaming, Suggestion
from mercury_lsp.documents.document import Edit, Snapshot

ENTRIES_KEPT = 64
"""Most edits remembered that are not offered again."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Edits in one line of a document's version, from left to right, to be made at once."""

    snapshot: Snapshot
    edits: tuple[Edit, ...]
    renaming: Renaming | None = None
    """The renaming that it continues."""
    seconds: float = 0.0
    """How long it took to find."""

    @property
    def whole(self) -> Edit:
        """Its edits as one."""
        return joined(self.edits, self.snapshot)

    def suggestion(self) -> Suggestion:
        """What is shown of it. Rules are exact, so no model judges them."""
        return replace(Suggestion.replacing(self.snapshot, self.whole, 1.0, self.seconds), renaming=self.renaming)


@dataclass(frozen=True, slots=True)
class Question:
    """A request for the next edit in one version of a document, with everything needed to find it."""

    snapshot: Snapshot
    path: str
    hunks: Sequence[Hunk]
    """The user's changes, oldest first, in all documents that may be used."""
    cursor: int | None = None
    """None if the user asks by key."""
    others: Sequence[tuple[Snapshot, str]] = ()
    """Other documents that may be edited, with their paths."""
    errors: Callable[[Snapshot], Collection[int]] = lambda snapshot: ()
    """The lines of a document with errors that other servers reported after the user's change."""
    taken_back: tuple[str, Edit] | None = None
    """URI and place of the change that the user has just undone."""
    changes: Sequence[Edit] = ()
    """The user's changes of this document, oldest first."""
    silence: Silence = field(default_factory=lambda: Silence(""))
    proposed: Sequence[Proposal | None] = ()
    """What the rules propose; empty until it is worked out."""

    @property
    def documents(self) -> Sequence[tuple[Snapshot, str]]:
        """This document, then the others."""
        return [(self.snapshot, self.path), *self.others]

    def undone_in(self, uri: str) -> Edit | None:
        """The place of the change of a document that the user has just undone."""
        return self.taken_back[1] if self.taken_back is not None and self.taken_back[0] == uri else None

    def is_taken_back(self, uri: str, edit: Edit) -> bool:
        """Whether the user has just undone a change where an edit is proposed."""
        undone = self.undone_in(uri)
        return undone is not None and edit.start <= undone.end and undone.start <= edit.end


class Ledger:
    """The offers of one connection, which later edits move; used on the event loop's thread only.

    An edit that was applied or dismissed is not offered again in its place.
    """

    def __init__(self) -> None:
        self._offered: list[tuple[str, Edit]] = []
        """The places of the last offer, with their document's URI."""
        self._ids: list[str] = []
        """Its suggestion ids: requests for ghost text and for a next edit may both find it."""
        self._declined: list[tuple[str, Edit]] = []
        """Edits that were dismissed or touched by another, because the offer was accepted or overwritten."""

    def offer(self, suggestion_id: str, uri: str, edits: Sequence[Edit]) -> None:
        """Record an offer; an earlier one that was neither edited nor dismissed may be offered again."""
        offered = [(uri, each) for each in edits]
        self._ids = [*(self._ids if offered == self._offered else ()), suggestion_id][-ENTRIES_KEPT:]
        self._offered = offered

    def edited(self, uri: str, edits: Sequence[Edit]) -> None:
        """The user edited a document."""
        for edit in edits:
            if any(where == uri and edit.start <= at.end and at.start <= edit.end for where, at in self._offered):
                self._decline()
            self._offered, self._declined = (
                [(where, _moved(at, edit) if where == uri else at) for where, at in known]
                for known in (self._offered, self._declined)
            )

    def dismiss(self, suggestion_id: str) -> None:
        """Do not offer this edit at these places again."""
        if suggestion_id in self._ids:
            self._decline()

    def is_declined(self, uri: str, edit: Edit) -> bool:
        """Whether the user dismissed this edit in this place or took it back."""
        return (uri, edit) in self._declined

    def _decline(self) -> None:
        self._declined = [*self._declined, *self._offered][-ENTRIES_KEPT:]
        self._offered, self._ids = [], []


def _moved(proposed: Edit, edit: Edit) -> Edit:
    """A proposed edit after another one, which does not move it if made at its start."""
    if edit.start >= proposed.start:
        return proposed
    return replace(proposed, start=moved_offset(proposed.start, edit))
