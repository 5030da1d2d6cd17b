"""Has the likeliest places rewritten, a few at a time, and offers the first edit that may be shown."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from threading import Event
from time import perf_counter

from mercury_engine.api import EditHunk

from mercury_lsp.completion.next_edits.checks import is_wanted
from mercury_lsp.completion.next_edits.diagnostics import Evidence, no_evidence
from mercury_lsp.completion.next_edits.edit_sites import EditSite
from mercury_lsp.completion.next_edits.history import Hunk, shown
from mercury_lsp.completion.next_edits.offer import Offer
from mercury_lsp.completion.next_edits.places import Place, RankedPlaces
from mercury_lsp.completion.next_edits.rewriting import Rewrite
from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Edit, Snapshot

MIN_CHANCE_UNASKED = 0.3
"""Least chance of a place if nobody asked: 61 % of such places are right, and 93 % of quiet moments stay quiet."""

MIN_CHANCE_BY_KEY = 0.1

MAX_PLACES = 3
"""Places that are rewritten at once; they share the engine's passes."""

DISMISSED_KEPT = 64
"""Number of dismissed edits that are not offered again."""


RewritePlace = Callable[[Place, Sequence[EditHunk], Event], Awaitable[Rewrite | None]]
"""Rewrites a place after the user's edits, oldest first; None if it stays. Raises Cancelled when the event is set."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the next edit is found by: the user's history, and the head's ranking of places, when asked for."""

    hunks: Sequence[Hunk]
    rank: Callable[[], RankedPlaces | None]
    """None if the head can't say."""
    evidence: Callable[[Snapshot], Evidence] = no_evidence
    """Where other servers found something wrong since the user's change."""
    taken_back: tuple[str, int, int] | None = None
    """Uri, start and end of the text in which the user has just taken a change back."""

    def is_taken_back(self, uri: str, start: int, end: int) -> bool:
        """Whether the user has just taken back a change of this text, or of a part of it."""
        if self.taken_back is None:
            return False
        where, first, last = self.taken_back
        return where == uri and start <= last and first <= end


NO_SURROUNDINGS = Surroundings((), lambda: None)


class RewrittenPlaces:
    """The rewritten places of one connection, and what the user did not want; for the event loop's thread."""

    def __init__(self) -> None:
        self.rewrite: RewritePlace | None = None
        """Nothing is offered without it."""
        self._offered: dict[str, Offer] = {}
        self._dismissed: dict[tuple[str, str, str], None] = {}
        """By uri, the old texts and new texts of edits that were dismissed, oldest first."""

    def open(self, snapshot: Snapshot, places: Sequence[Place], invoked: bool) -> list[Place]:
        """The places of this version that are likely enough to ask about."""
        least = MIN_CHANCE_BY_KEY if invoked else MIN_CHANCE_UNASKED
        return [each for each in places if each.snapshot.source is snapshot.source and each.chance >= least]

    async def first(self, places: Sequence[Place], around: Surroundings, cancel: Event) -> list[Suggestion]:
        """The edit of the first place whose rewrite may be shown; raises Cancelled, and what the model raises."""
        started = perf_counter()
        assert self.rewrite is not None
        asked, hunks = places[:MAX_PLACES], around.hunks
        rewrites = (self.rewrite(place, shown(hunks, place.snapshot.uri), cancel) for place in asked)
        for place, found in zip(asked, await asyncio.gather(*rewrites), strict=True):
            if found is None or not is_wanted(place.snapshot, found.start, found.end, found.text, hunks):
                continue
            if around.is_taken_back(place.snapshot.uri, found.start, found.end):
                continue
            old = place.snapshot.slice(found.start, found.end)
            offer = Offer(place.snapshot.uri, EditSite(found.start, old, found.text))
            if offer.key not in self._dismissed:
                span, seconds = (place.snapshot, found.start, found.end), perf_counter() - started
                suggestion = Suggestion.replacing(*span, found.text, found.confidence, seconds, "place")
                self._offered = {suggestion.id: offer}
                return [suggestion]
        return []

    def edited(self, uri: str, edits: Sequence[Edit]) -> None:
        """The user edited: an offer that an edit touches was taken or declined, and is not made again."""
        for edit in edits:
            for suggestion_id, offer in list(self._offered.items()):
                if offer.is_touched_by(uri, edit):
                    self.dismiss(suggestion_id)
                else:
                    self._offered[suggestion_id] = offer.moved(uri, edit)

    def dismiss(self, suggestion_id: str) -> None:
        """Do not offer this edit again."""
        if (offer := self._offered.pop(suggestion_id, None)) is not None:
            self._dismissed[offer.key] = None
            for oldest in list(self._dismissed)[:-DISMISSED_KEPT]:
                del self._dismissed[oldest]
