"""Has regions rewritten, those around the cursor and the last change first, and picks the first hunk to show."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from threading import Event
from time import perf_counter

from mercury_engine.api import EditHunk
from mercury_engine.utility import Utility

from mercury_lsp.completion.next_edits.ahead import Ahead
from mercury_lsp.completion.next_edits.change import Change
from mercury_lsp.completion.next_edits.edit_sites import EditSite
from mercury_lsp.completion.next_edits.filters import followed, objection
from mercury_lsp.completion.next_edits.history import Hunk, shown
from mercury_lsp.completion.next_edits.ledger import Ledger
from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.completion.next_edits.rewriting import RewrittenLines
from mercury_lsp.completion.next_edits.written_edits import WrittenEdits
from mercury_lsp.completion.price import OF_EDITS
from mercury_lsp.completion.silence import Silence
from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.chunked_text import ChunkedText, with_line_feeds
from mercury_lsp.documents.document import Document, Snapshot

MIN_PROBABILITY = 0.3
"""Least probability of a hunk that is shown; what it may say is left to `filters.followed`."""

MIN_RELATED_PROBABILITY = 0.8
"""Least probability of a hunk in a related region, out of the user's sight."""

MAX_PLACES = 2
"""Places elsewhere that are rewritten at once; they share the engine's passes."""

RewriteRegion = Callable[[Place, Sequence[EditHunk], float, Event], Awaitable[Sequence[RewrittenLines] | None]]
"""Rewrites a region after the user's edits, oldest first; None if the model must not see it. Raises Cancelled when the
event is set."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the next edit is found by."""

    hunks: Sequence[Hunk]
    errors: Callable[[Snapshot], Collection[int]] = lambda snapshot: ()
    """The lines of a document in which other servers found an error since the user's change."""
    taken_back: tuple[str, int, int] | None = None
    """Uri, start and end of the text in which the user has just taken a change back."""
    changes: Sequence[Change] = ()
    """The user's in the document at hand, oldest first."""

    def is_taken_back(self, uri: str, start: int, end: int) -> bool:
        """Whether the user has just taken back a change of this text, or of a part of it."""
        if self.taken_back is None:
            return False
        where, first, last = self.taken_back
        return where == uri and start <= last and first <= end


def regions_at_hand(snapshot: Snapshot, path: str, cursor: int | None, hunks: Sequence[Hunk]) -> list[Place]:
    """The region around the cursor, and that around the last change in the document if it lies outside."""
    own = [hunk for hunk in hunks if hunk.uri == snapshot.uri]
    found: list[Place] = []
    if cursor is not None:
        found.append(replace(Place.around(snapshot, path, snapshot.source.line_of(cursor)), cursor=cursor))
    if own:
        line = max(own[-1].line, own[-1].end_line - 1)
        if not any(each.covers(line) for each in found):
            found.append(Place.around(snapshot, path, line))
    return found


class RegionEdits:
    """The model's edits of regions; for the event loop's thread."""

    def __init__(self, ledger: Ledger) -> None:
        self.rewrite: RewriteRegion | None = None
        """Nothing is offered without it."""
        self.writes_edits: Callable[[], bool] = lambda: False
        """Whether the model was trained on edits: what it writes need not follow the user's."""
        self.gate: Callable[[str], Utility] = lambda language: OF_EDITS
        """When an edit in a language is worth showing unasked, if its model was trained on edits."""
        self.looks_ahead: Callable[[], bool] = lambda: False
        """Whether the edit after one on display may be asked for before that is taken."""
        self.ahead = Ahead()
        self._ledger, self._written = ledger, WrittenEdits(ledger)
        self._path = ""
        """Of the document that the last answer is about."""
        self._in_vain: tuple[ChunkedText, int, Hunk] | None = None
        """The text, line and last change of the related region that was rewritten in vain last."""

    async def related(
        self, region: Place, around: Surroundings, silence: Silence, cancel: Event
    ) -> tuple[Place, Suggestion] | None:
        """A sure hunk in the line of a related region, which is asked about once; raises as `first`."""
        asked = region.snapshot.source, region.line, around.hunks[-1]
        if asked == self._in_vain:
            silence.add(f"line {region.line + 1}: it was rewritten in vain before", region.snapshot.uri)
            return None
        found = await self.first([region], around, silence, cancel, is_at_line=True)
        self._in_vain = asked if found is None else None
        return found

    def made_last_change(self, snapshot: Snapshot) -> bool:
        """Whether the document's last change was an edit of the model's, which is no example of the user's."""
        return self._written.rest(snapshot) is not None

    def rest(self, snapshot: Snapshot, cursor: int | None, around: Surroundings) -> Suggestion | None:
        """The next edit of an answer whose last one was taken; asks no model."""
        edits = self._written.rest(snapshot)
        if not edits:
            return None
        gate, silence = self._gate(snapshot, cursor), Silence(snapshot.uri)
        found = self._written.first(snapshot, edits, cursor, around.hunks, silence, 0.0, gate)
        if found is not None:
            self._look_ahead(snapshot, found, around)
        return found

    async def first(
        self,
        regions: Iterable[Place],
        around: Surroundings,
        silence: Silence,
        cancel: Event,
        is_at_line: bool = False,
    ) -> tuple[Place, Suggestion] | None:
        """The first hunk of the regions that may be shown, with its region; why others aren't is added to `silence`.

        With `is_at_line` only sure hunks count, in the line that a region is around.

        Raises Cancelled, and what the model raises.
        """
        if self.rewrite is None:
            return None
        asked, started = list(regions), perf_counter()
        rewrites = [self._rewritten(self.rewrite, each, around, cancel) for each in asked]
        for region, hunks in zip(asked, await asyncio.gather(*rewrites), strict=True):
            if not hunks:
                why = "the model changes nothing" if hunks is not None else "the model must not see them"
                silence.add(f"lines {region.start_line + 1} to {region.end_line}: {why}", region.snapshot.uri)
            if self.writes_edits():
                seconds = perf_counter() - started
                edits = [
                    each for each in hunks or () if not around.is_taken_back(region.snapshot.uri, each.start, each.end)
                ]
                gate = self._gate(region.snapshot, region.cursor)
                found = self._written.first(region.snapshot, edits, region.cursor, around.hunks, silence, seconds, gate)
                if found is not None:
                    self._path = region.path
                    self._look_ahead(region.snapshot, found, around)
                    return region, found
                continue
            rejected = -1
            text = region.snapshot.text if hunks else ""
            for whole in hunks or ():
                if is_at_line and not _is_sure_at_line(whole, region):
                    continue
                old = region.snapshot.slice(whole.start, whole.end)
                old, new, strays = followed(old, whole.text, around.hunks, whole.probability, text)
                hunk = replace(whole, end=whole.start + len(old), text=new)
                why_not = self._objection(region.snapshot, hunk, old, around, strays)
                if why_not is None and hunk.start == rejected:
                    why_not = "it goes on with one that isn't shown"
                if why_not is not None:
                    line, rejected = region.snapshot.source.line_of(hunk.start) + 1, hunk.end
                    silence.add(f"line {line}: an edit of the model's is not shown, {why_not}", region.snapshot.uri)
                    continue
                span = region.snapshot, hunk.start, hunk.end
                found = Suggestion.replacing(*span, hunk.text, hunk.probability, perf_counter() - started, "region")
                self._ledger.offer(found.id, region.snapshot.uri, [EditSite(hunk.start, old, hunk.text)])
                return region, found
        return None

    async def _rewritten(
        self, rewrite: RewriteRegion, region: Place, around: Surroundings, cancel: Event
    ) -> Sequence[RewrittenLines] | None:
        """The edits of a region, from ahead where it was rewritten while the user looked at the last one."""
        if (found := await self.ahead.taken(region, cancel)) is not None:
            return found
        return await rewrite(region, shown(around.hunks, region.snapshot.uri), MIN_PROBABILITY, cancel)

    def _look_ahead(self, snapshot: Snapshot, offered: Suggestion, around: Surroundings) -> None:
        """Begin to rewrite what the edit on display leaves around its end, if it is its answer's last one."""
        text, rewrite = self._written.text_if_last, self.rewrite
        if text is None or rewrite is None or not self.looks_ahead():
            return
        after = Document(snapshot.uri, snapshot.language_id, snapshot.version + 1, text).snapshot()
        start, end = snapshot.offset_at(*offered.start), snapshot.offset_at(*offered.end)
        cursor = start + len(offered.text)  # where editors put it
        region = replace(Place.around(after, self._path, after.source.line_of(cursor)), cursor=cursor)
        taken = EditHunk(start, *map(with_line_feeds, (snapshot.slice(start, end), offered.text)))
        history = [*shown(around.hunks, snapshot.uri), taken]
        self.ahead.begin(snapshot, region, lambda cancel: rewrite(region, history, MIN_PROBABILITY, cancel))

    def _gate(self, snapshot: Snapshot, cursor: int | None) -> Utility | None:
        """When an edit is worth showing; None for a user who asks by key."""
        return None if cursor is None else self.gate(snapshot.language_id)

    def _objection(
        self, snapshot: Snapshot, hunk: RewrittenLines, old: str, around: Surroundings, strays: str | None
    ) -> str | None:
        if hunk.probability < MIN_PROBABILITY:
            return f"its probability is {hunk.probability:.2f}, below {MIN_PROBABILITY}"
        if around.is_taken_back(snapshot.uri, hunk.start, hunk.end):
            return "you have just taken a change back there"
        if self._ledger.is_declined(snapshot.uri, EditSite(hunk.start, old, hunk.text)):
            return "it was offered before"
        return strays or objection(snapshot, hunk.start, hunk.end, hunk.text, around.hunks)


def _is_sure_at_line(hunk: RewrittenLines, region: Place) -> bool:
    """Whether a hunk is sure and in the line that its region is around."""
    source = region.snapshot.source
    first, last = source.line_of(hunk.start), source.line_of(max(hunk.start, hunk.end - 1))
    return hunk.probability >= MIN_RELATED_PROBABILITY and first <= region.line <= last
