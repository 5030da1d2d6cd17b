"""The renamings in progress in one document; they continue after other edits until no place is left."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from mercury_lsp.completion.next_edits.edits import below_first, effective
from mercury_lsp.completion.next_edits.names import (
    NamePlaces,
    is_shorthand,
    places_of,
    renamed_by,
    stands_at,
    was_there,
)
from mercury_lsp.completion.suggestions import Renaming
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.documents.redaction import edit_shows_secret

MIN_FINISHED_NAME_CHARS = 2
"""Shortest new name, in characters, that counts as finished with the cursor at its end."""


class Renamings:
    """The renamings in progress in one document; used on the event loop's thread only."""

    def __init__(self, is_declined: Callable[[str, Edit], bool] = lambda uri, edit: False) -> None:
        self._is_declined = is_declined
        """Whether the user did not want an edit of a document."""
        self._begun: list[NamePlaces] = []
        """In the order of their latest changes."""
        self._told = NamePlaces()
        """The places of the name at the cursor, from another language server."""
        self._last: Edit | None = None
        """The last change, if it replaced a name."""
        self._erased_at: int | None = None
        """Where the last edit was, if it only removed text."""

    def told(self, snapshot: Snapshot, places: Iterable[tuple[int, int, bool]]) -> None:
        """Another server reports the places of the name at the cursor (`NamePlaces.told`)."""
        told = NamePlaces.told(snapshot, places)
        if told.starts and not {*told.starts} < {*self._told.starts}:  # during a renaming it sees only a part
            self._told = told

    def record(self, edits: Sequence[Edit]) -> None:
        """Record edits, in order; every edit of the document must be recorded."""
        for edit in effective(edits):
            self._erased_at = None if edit.inserted else edit.start
            names = {each.new for each in self._begun}
            self._told = self._told.after(edit, names)
            self._begun = [each.after(edit, names) for each in self._begun]

    def under_way(self, snapshot: Snapshot, changes: Sequence[Edit], taken_back: Edit | None = None) -> Renaming | None:
        """The renaming to continue: the latest that must go on, or else that of the last change, even if finished.

        `changes` are the user's in this document, oldest first; renamings that none of them touches are forgotten.
        `taken_back` is the change that the user has just undone.
        """
        found = [renamed_by(each, snapshot) for each in changes]
        self._last = found[-1] if found else None
        made = [each for each in found if each is not None]
        for each in made:
            self._begin(each, made, snapshot)
        spans = [((name or each).start, each.new_end) for each, name in zip(changes, found, strict=True)]
        touched = [each for each in self._begun if any(each.are_in(*span) for span in spans)]
        self._begun = [each for each in touched if each.renamed_in(snapshot)]
        finished = None
        for places in reversed(self._begun):
            if places.is_ignored or (taken_back and places.are_in(taken_back.start, taken_back.new_end)):
                continue
            renaming = self._seen(places, snapshot)
            if renaming.left and renaming.must_go_on:
                return renaming
            if self._last is not None and places.new == self._last.inserted and places.know(self._last):
                finished = renaming
        return finished

    def _begin(self, found: Edit, made: Sequence[Edit], snapshot: Snapshot) -> None:
        """Begin a renaming with a changed name, or continue one."""
        known = [each for each in self._begun if each.know(found)]
        places = next((each for each in known if each.new == found.inserted), None)
        if places is None:
            same = (each.start for each in made if (each.removed, each.inserted) == (found.removed, found.inserted))
            told = self._told if self._told.know(found) else None
            places = known[-1] if known else told or places_of(found, same, snapshot)
            if places is None:
                return
            is_secret = edit_shows_secret(snapshot, found.start, found.new_end, found.removed)
            is_ignored = is_secret or (not places.is_told and was_there(found, places, snapshot))
            places = replace(places, new=found.inserted, is_ignored=is_ignored)
        latest = replace(places, last=places.starts.index(found.start))
        self._begun = [*(each for each in self._begun if each != places), latest]

    def _seen(self, places: NamePlaces, snapshot: Snapshot) -> Renaming:
        """The state of a renaming in a version; remaining places below the last change come first.

        Places with a new name that the user gave earlier remain, too.
        """
        new, made = places.new, places.renamed_in(snapshot)
        earlier = self._begun[: self._begun.index(places)]
        others = [each.new for each in earlier if each.starts == places.starts]
        left = [
            Edit(at, name, f"{name}: {new}" if is_shorthand(at, snapshot) else new)
            for at in places.starts
            for name in (places.name, *others)
            if at not in made and stands_at(name, at, snapshot)
        ]
        ordered = below_first(left, places.starts[places.last])
        open_ones = tuple(each for each in ordered if not self._is_declined(snapshot.uri, each))
        is_bound_here = places.binding is not None and places.starts[places.binding] in made
        must_go_on = is_bound_here or (len(made) > 1 and (places.binding is not None or places.is_told))
        return Renaming(places.name, new, len(made), open_ones, must_go_on, places.is_told)

    def is_unfinished(self, cursor: int) -> bool:
        """Whether the cursor is in the new name of the last change, and the user seems to be still editing it."""
        last = self._last
        if last is None or not last.start <= cursor <= last.new_end:
            return False
        is_erasing = self._erased_at is not None and last.start <= self._erased_at <= last.new_end
        is_short = len(last.inserted) < MIN_FINISHED_NAME_CHARS
        return is_erasing or is_short or last.removed.startswith(last.inserted)
