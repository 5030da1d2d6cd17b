"""The renamings in progress in one document; they continue after other edits until no place is left."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from mercury_lsp.completion.next_edits.change import Change, narrowed
from mercury_lsp.completion.next_edits.edit_sites import EditSite, below_first, joined
from mercury_lsp.completion.next_edits.name_places import NamePlaces, is_shorthand, places_of, stands_at, was_there
from mercury_lsp.completion.next_edits.proposals import Proposal, by_line
from mercury_lsp.completion.next_edits.replacement import Replacement, replacement_of
from mercury_lsp.completion.suggestions import RenamingProgress
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.documents.redaction import edit_shows_secret
from mercury_lsp.documents.syntax import breaks_document

MAX_OFFERED_SITES = 8
"""Most sites offered for one change at a time."""

MIN_FINISHED_NAME_CHARS = 2
"""Shortest new name, in characters, that counts as finished with the cursor at its end."""

PARSE_SECONDS = 0.5
"""Budget of the parse that checks a renamed document."""


@dataclass(frozen=True, slots=True)
class Renaming:
    """A name changed in some places, and the places that still have the old one."""

    old: str
    new: str
    made: int
    left: tuple[EditSite, ...]
    """Remaining places, without those that the user dismissed."""
    must_go_on: bool
    """The name was changed where it is bound, or in two places: without the rest it would be undefined."""
    is_told: bool
    """The places come from another language server."""

    @property
    def remaining(self) -> int:
        """Number of places with the old name."""
        return len(self.left)

    @property
    def total(self) -> int:
        """Number of all places."""
        return self.made + self.remaining

    def is_all_of(self, before: str, after: str) -> bool:
        """Whether the renaming alone changed these lines."""
        return before != after and re.sub(rf"\b{re.escape(self.old)}\b", self.new, before) == after

    def progress(self, offered: int) -> RenamingProgress:
        """The progress shown with an offer of so many places."""
        first, last = self.made + 1, self.made + offered
        return RenamingProgress(self.old, self.new, first, last, self.total, self.remaining)


class RenamedDocument(NamedTuple):
    """The places in one version of a document where a name is to be replaced, from top to bottom."""

    snapshot: Snapshot
    sites: tuple[EditSite, ...]
    kept: int
    """Number of places left alone because their lines look like secrets."""


def renamed(snapshot: Snapshot, sites: Sequence[EditSite]) -> RenamedDocument | None:
    """All places renamed except in secret lines; None if that would break the document's syntax."""
    ordered = sorted(sites, key=lambda site: site.start)
    open_to_all = [each for each in ordered if not edit_shows_secret(snapshot, each.start, each.end, each.new)]
    if open_to_all:
        whole = joined(open_to_all, snapshot)
        if breaks_document(snapshot, whole.start, whole.end, whole.new, PARSE_SECONDS):
            return None
    return RenamedDocument(snapshot, tuple(open_to_all), len(ordered) - len(open_to_all))


@dataclass(slots=True)
class _Begun:
    """A name that the user gives to the places of another."""

    new: str
    places: NamePlaces
    is_ignored: bool
    """The new name was in use before, so the user switched to it instead of renaming; or the line shows a secret."""
    last: int = 0
    """The index of the place that the user changed last."""

    def is_within(self, spans: Iterable[tuple[int, int]]) -> bool:
        """Whether one of its places is within one of these spans of the text."""
        return any(start <= at <= end for start, end in spans for at in self.places.starts)

    def made(self, snapshot: Snapshot) -> set[int]:
        """The places that have the new name."""
        kept = f"{self.places.name}: {self.new}"  # a key and its value, for `{old}`
        return {at for at in self.places.starts if any(stands_at(each, at, snapshot) for each in (self.new, kept))}


class Renamings:
    """The renamings in progress in one document; used on the event loop's thread only."""

    def __init__(self, is_declined: Callable[[str, EditSite], bool] = lambda uri, site: False) -> None:
        self._is_declined = is_declined
        """Whether the user did not want an edit of a document."""
        self._begun: list[_Begun] = []
        """In the order of their latest changes."""
        self._told = NamePlaces()
        """The places of the name at the cursor, from another language server."""
        self._last: Replacement | None = None
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
        for edit in filter(None, map(narrowed, edits)):
            self._erased_at = None if edit.inserted else edit.start
            names = {each.new for each in self._begun}
            self._told = self._told.after(edit, names)
            for begun in self._begun:
                begun.places = begun.places.after(edit, names)

    def under_way(
        self, snapshot: Snapshot, changes: Sequence[Change], taken_back: tuple[int, int] | None = None
    ) -> Renaming | None:
        """The renaming to continue: the latest that must go on, or else that of the last change, even if finished.

        `changes` are the user's in this document, oldest first; renamings that none of them touches are forgotten.
        `taken_back` is the span in which the user has just undone a change.
        """
        found = [replacement_of(each, snapshot) for each in changes]
        made = [each for each in found if each is not None]
        self._last = found[-1] if found else None
        for replacement in made:
            self._begin(replacement, made, snapshot)
        spans = [((name or each).start, each.end) for each, name in zip(changes, found, strict=True)]
        self._begun = [each for each in self._begun if each.is_within(spans) and each.made(snapshot)]
        finished = None
        for begun in reversed(self._begun):
            if begun.is_ignored or (taken_back is not None and begun.is_within([taken_back])):
                continue
            renaming = self._seen(begun, snapshot)
            if renaming.left and renaming.must_go_on:
                return renaming
            if self._last is not None and begun.new == self._last.new and begun.places.know(self._last):
                finished = renaming
        return finished

    def _begin(self, found: Replacement, made: Sequence[Replacement], snapshot: Snapshot) -> None:
        """Begin a renaming with a replacement, or continue one."""
        known = [each for each in self._begun if each.places.know(found)]
        begun = next((each for each in known if each.new == found.new), None)
        if begun is None:
            same = (each.start for each in made if each[:2] == found[:2])
            told = self._told if self._told.know(found) else None
            places = known[-1].places if known else told or places_of(found, same, snapshot)
            if places is None:
                return
            is_secret = edit_shows_secret(snapshot, found.start, found.end, found.old)
            is_switch = not places.is_told and was_there(found, places, snapshot)
            begun = _Begun(found.new, places, is_secret or is_switch)
        begun.last = begun.places.starts.index(found.start)
        self._begun = [*(each for each in self._begun if each is not begun), begun]

    def _seen(self, begun: _Begun, snapshot: Snapshot) -> Renaming:
        """The state of a renaming in a version; remaining places below the last change come first.

        Places with a new name that the user gave earlier remain, too.
        """
        places, new, made = begun.places, begun.new, begun.made(snapshot)
        earlier = self._begun[: self._begun.index(begun)]
        others = [each.new for each in earlier if each.places.starts == places.starts]
        left = [
            EditSite(at, name, f"{name}: {new}" if is_shorthand(at, snapshot) else new)
            for at in places.starts
            for name in (places.name, *others)
            if at not in made and stands_at(name, at, snapshot)
        ]
        left = [
            each for each in below_first(left, places.starts[begun.last]) if not self._is_declined(snapshot.uri, each)
        ]
        is_bound_here = places.binding is not None and places.starts[places.binding] in made
        must_go_on = is_bound_here or (len(made) > 1 and (places.binding is not None or places.is_told))
        return Renaming(places.name, new, len(made), tuple(left), must_go_on, places.is_told)

    def is_unfinished(self, cursor: int) -> bool:
        """Whether the cursor is in the new name of the last change, and the user seems to be still editing it."""
        last = self._last
        if last is None or not last.start <= cursor <= last.end:
            return False
        is_erasing = self._erased_at is not None and last.start <= self._erased_at <= last.end
        return is_erasing or len(last.new) < MIN_FINISHED_NAME_CHARS or last.old.startswith(last.new)


def proposals(
    renaming: Renaming, snapshot: Snapshot, others: Iterable[Proposal], is_invoked: bool
) -> Iterator[Proposal]:
    """Other edits, then the renaming's places, grouped by line; without `is_invoked` only if it must go on.

    Others that rename the same come last, or not at all if another language server told the places.
    """
    same = []
    for each in others:
        is_same = (each.site.old, each.site.new) == (renaming.old, renaming.new)
        if renaming.must_go_on and is_same and each.snapshot.uri == snapshot.uri:
            same.append(each)
        else:
            yield each
    if is_invoked or renaming.must_go_on:
        for line in by_line(renaming.left[:MAX_OFFERED_SITES], snapshot):
            yield Proposal(snapshot, tuple(line), partial(renaming.progress, len(line)))
    yield from () if renaming.is_told else same
