"""Requests rewrites of regions, first around the cursor and the last change, and picks the first edit to show."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from threading import Event
from time import perf_counter

from mercury_engine.api import EditHunk
from mercury_engine.utility import Utility

from mercury_lsp.completion.next_edits.edits import joined, moved
from mercury_lsp.completion.next_edits.filters import BREAKS, followed, objection
from mercury_lsp.completion.next_edits.history import Hunk, shown
from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.completion.next_edits.proposals import Ledger, Question
from mercury_lsp.completion.next_edits.rewriting import RewrittenLines
from mercury_lsp.completion.price import OF_EDITS, least_probability_of_edit
from mercury_lsp.completion.silence import Silence
from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.chunked_text import ChunkedText, with_line_feeds
from mercury_lsp.documents.document import Document, Edit, Snapshot

MIN_PROBABILITY = 0.3
"""Least probability of an edit that is shown; `filters.followed` decides what it may say."""

MIN_RELATED_PROBABILITY = 0.8
"""Least probability of an edit in a related region, out of the user's sight."""

OFFERED = "it was offered before"

MAX_PLACES = 2
"""Most places elsewhere that are rewritten at once; they share the engine's passes."""

RewriteRegion = Callable[[Place, Sequence[EditHunk], float, Event], Awaitable[Sequence[RewrittenLines] | None]]
"""Rewrites a region after the user's edits, oldest first; None if the model must not see it. Raises Cancelled when the
event is set."""


@dataclass(frozen=True, slots=True)
class _Taken:
    """A document as it will be once the edit on display is accepted, and what is left of the answer then."""

    uri: str
    path: str
    text: str
    left: Sequence[RewrittenLines]


class Ahead:
    """The rewrite of the text as it will be once the edit on display is accepted, begun while the user looks at it.

    There is at most one; used on the event loop's thread only.
    """

    def __init__(self) -> None:
        self._region: Place | None = None
        self._shown = ""
        """The text in which the edit is on display."""
        self._cancel = Event()
        self._asked: asyncio.Future[tuple[Sequence[RewrittenLines] | BaseException | None]] | None = None

    def begin(self, rewrite: RewriteRegion, region: Place, shown: Snapshot, history: Sequence[EditHunk]) -> None:
        """Rewrite the region of the text that the edit on display in `shown` leaves when accepted."""
        self.drop()
        self._region, self._shown, self._cancel = region, shown.text, Event()
        rewriting = rewrite(region, history, MIN_PROBABILITY, self._cancel)
        self._asked = asyncio.gather(rewriting, return_exceptions=True)  # the next request reports why it fails

    def drop(self) -> None:
        """Cancel the rewrite: nobody will ask for it."""
        self._cancel.set()
        self._region = self._asked = None

    def keep_for(self, snapshot: Snapshot) -> None:
        """Drop the rewrite unless the user is still looking at the edit or has accepted it."""
        ahead = self._region
        is_its = ahead is not None and snapshot.uri == ahead.snapshot.uri
        if ahead is not None and is_its and snapshot.text not in (self._shown, ahead.snapshot.text):
            self.drop()

    async def taken(self, region: Place) -> Sequence[RewrittenLines] | None:
        """The edits of a region rewritten ahead; None if it was not, or if that failed."""
        ahead, asked = self._region, self._asked
        if ahead is None or asked is None or region.snapshot.uri != ahead.snapshot.uri:
            return None
        if region.line != ahead.line or region.snapshot.text != ahead.snapshot.text:  # another line has another window
            return None
        try:
            [found] = await asyncio.shield(asked)
        except asyncio.CancelledError:
            self.drop()
            raise
        return None if isinstance(found, BaseException) else found


class RegionEdits:
    """The model's edits of regions; used on the event loop's thread only."""

    def __init__(self, ledger: Ledger) -> None:
        self.rewrite: RewriteRegion | None = None
        """The model's rewriting; nothing is offered without it."""
        self.writes_edits: Callable[[], bool] = lambda: False
        """Whether the model was trained on edits: its edits need not follow the user's."""
        self.gate: Callable[[str], Utility] = lambda language: OF_EDITS
        """When an edit in a language is worth showing automatically, if the model was trained on edits."""
        self.looks_ahead: Callable[[], bool] = lambda: False
        """Whether the next edit may be requested before the one on display is accepted."""
        self.ahead = Ahead()
        self._ledger = ledger
        self._taken: _Taken | None = None
        """The last answer of a model trained on edits."""
        self._in_vain: tuple[ChunkedText, int, Hunk] | None = None
        """The text, line and last change of the related region that was last rewritten without result."""

    def at_hand(self, asked: Question) -> list[Place]:
        """The region around the cursor and, if the document's last change is outside, the region around that.

        A model trained on edits has one larger window; others do nothing before the user changes something.
        """
        snapshot, own = asked.snapshot, [each for each in asked.hunks if each.uri == asked.snapshot.uri]
        found: list[Place] = []
        if asked.cursor is not None and (asked.hunks or self.writes_edits()):
            line = snapshot.source.line_of(asked.cursor)
            found.append(replace(Place.around(snapshot, asked.path, line), cursor=asked.cursor))
        if own and not (found and self.writes_edits()):
            line = max(own[-1].line, own[-1].end_line - 1)
            if not any(each.covers(line) for each in found):
                found.append(Place.around(snapshot, asked.path, line))
        return found

    async def related(self, region: Place, asked: Question, cancel: Event) -> list[Suggestion]:
        """A sure edit in the line of a related region, which is rewritten once; raises as `first`."""
        known = region.snapshot.source, region.line, asked.hunks[-1]
        if known == self._in_vain:
            why = f"line {region.line + 1}: it was rewritten before, without an edit to show"
            asked.silence.add(why, region.snapshot.uri)
            return []
        found = await self.first([region], asked, cancel, is_at_line=True)
        self._in_vain = None if found else known
        return found

    def made_last_change(self, snapshot: Snapshot) -> bool:
        """Whether the document's last change was the model's edit, which is no example by the user."""
        return self._left(snapshot) is not None

    def rest(self, asked: Question) -> list[Suggestion]:
        """The next edit of an answer whose last one was accepted; asks no model."""
        if not (left := self._left(asked.snapshot)) or self._taken is None:
            return []
        region = replace(Place.around(asked.snapshot, self._taken.path, 0), cursor=asked.cursor)
        return self._picked(region, left, replace(asked, silence=Silence("")), 0.0)

    def _left(self, snapshot: Snapshot) -> Sequence[RewrittenLines] | None:
        """The rest of the last answer; None unless its edit on display was the last change of the document."""
        taken = self._taken
        if taken is None or taken.uri != snapshot.uri or len(taken.text) != snapshot.length:
            return None
        return taken.left if taken.text == snapshot.text else None

    async def first(
        self, regions: Sequence[Place], asked: Question, cancel: Event, is_at_line: bool = False
    ) -> list[Suggestion]:
        """The first edit of the regions that may be shown.

        With `is_at_line` only sure edits in the region's own line count. Raises Cancelled, and what the model raises.
        """
        if self.rewrite is None:
            return []
        started = perf_counter()
        rewrites = [self._rewritten(self.rewrite, each, asked.hunks, cancel) for each in regions]
        pick = self._picked if self.writes_edits() else self._followed
        for region, edits in zip(regions, await asyncio.gather(*rewrites), strict=True):
            if not edits:
                why = "the model changes nothing" if edits is not None else "the model must not see them"
                where = f"lines {region.start_line + 1} to {region.end_line}"
                asked.silence.add(f"{where}: {why}", region.snapshot.uri)
                continue
            likely = [each for each in edits if not is_at_line or _is_sure_at_line(each, region)]
            if found := pick(region, likely, asked, perf_counter() - started):
                return found
        return []

    def _picked(
        self, region: Place, edits: Sequence[RewrittenLines], asked: Question, seconds: float
    ) -> list[Suggestion]:
        """The first edit to show from a model trained on edits: at or below the cursor's line, or else above. If one
        alone breaks the syntax, all of them are shown as one.
        """
        snapshot, gate = region.snapshot, self.gate(region.snapshot.language_id)

        def why_hidden(found: RewrittenLines) -> str | None:
            least = 0.0 if region.cursor is None else least_probability_of_edit(found.edit, gate)
            return self._why_hidden(snapshot, found, asked, least) or objection(
                snapshot, found.edit, asked.hunks, found.at_risk
            )

        edits = [each for each in edits if not asked.is_taken_back(snapshot.uri, each.edit)]
        begin = 0 if region.cursor is None else snapshot.source.line_bounds(region.cursor)[0]
        ordered = [each for each in edits if max(each.edit.start + 1, each.edit.end) > begin]
        ordered += reversed([each for each in edits if each not in ordered])
        reasons = [*map(why_hidden, ordered)]
        if BREAKS in reasons and len(edits) > 1:
            as_one = joined([each.edit for each in edits], snapshot)
            whole = RewrittenLines(as_one, min(each.probability for each in edits), edits[0].at_risk)
            if (why_not := why_hidden(whole)) is None:
                edits, ordered, reasons = [whole], [whole], [None]
            else:
                asked.silence.add(f"the model's edits are not shown together, {why_not}", snapshot.uri)
        for found, why_not in zip(ordered, reasons, strict=True):
            if why_not is None:
                edit = found.edit
                text = snapshot.text[: edit.start] + edit.inserted + snapshot.text[edit.end :]
                left = [replace(each, edit=moved(each.edit, edit)) for each in edits if each is not found]
                self._taken = _Taken(snapshot.uri, region.path, text, left)
                self._look_ahead(snapshot, edit, asked.hunks)
                return self._offered(snapshot, found, asked, seconds)
            _hide(snapshot, found.edit, why_not, asked.silence)
        return []

    def _followed(
        self, region: Place, edits: Sequence[RewrittenLines], asked: Question, seconds: float
    ) -> list[Suggestion]:
        """The first edit that follows from the user's changes, from a model not trained on edits."""
        snapshot, rejected = region.snapshot, -1
        for whole in edits:
            edit, strays = followed(whole.edit, asked.hunks, whole.probability, snapshot.text)
            found = replace(whole, edit=edit)
            why_not = self._why_hidden(snapshot, found, asked, MIN_PROBABILITY)
            why_not = why_not or strays or objection(snapshot, edit, asked.hunks)
            if why_not is None and edit.start == rejected:
                why_not = "it continues one that isn't shown"
            if why_not is None:
                return self._offered(snapshot, found, asked, seconds)
            rejected = edit.end
            _hide(snapshot, edit, why_not, asked.silence)
        return []

    def _why_hidden(self, snapshot: Snapshot, found: RewrittenLines, asked: Question, least: float) -> str | None:
        """Why an edit is not shown, whatever it changes."""
        if found.probability < least:
            return f"its probability is {found.probability:.2f}, below {least:.2f}"
        if asked.is_taken_back(snapshot.uri, found.edit):
            return "you have just undone a change there"
        return OFFERED if self._ledger.is_declined(snapshot.uri, found.edit) else None

    def _offered(self, snapshot: Snapshot, made: RewrittenLines, asked: Question, seconds: float) -> list[Suggestion]:
        found = Suggestion.replacing(snapshot, made.edit, made.probability, seconds, "region")
        self._ledger.offer(found.id, snapshot.uri, [made.edit])
        return [found.seen_from(asked.snapshot, snapshot)]

    async def _rewritten(
        self, rewrite: RewriteRegion, region: Place, hunks: Sequence[Hunk], cancel: Event
    ) -> Sequence[RewrittenLines] | None:
        """The edits of a region; prepared ones if it was rewritten while the user looked at the last edit."""
        if (found := await self.ahead.taken(region)) is not None:
            return found
        return await rewrite(region, shown(hunks, region.snapshot.uri), MIN_PROBABILITY, cancel)

    def _look_ahead(self, snapshot: Snapshot, edit: Edit, hunks: Sequence[Hunk]) -> None:
        """Begin to rewrite around the end of the edit on display, as if accepted, if it is its answer's last one."""
        taken, rewrite = self._taken, self.rewrite
        if taken is None or taken.left or rewrite is None or not self.looks_ahead():
            return
        after = Document(snapshot.uri, snapshot.language_id, snapshot.version + 1, taken.text).snapshot()
        cursor = edit.new_end  # where editors put it
        region = replace(Place.around(after, taken.path, after.source.line_of(cursor)), cursor=cursor)
        made = EditHunk(edit.start, *map(with_line_feeds, (edit.removed, edit.inserted)))
        history = [*shown(hunks, snapshot.uri), made]
        self.ahead.begin(rewrite, region, snapshot, history)


def _hide(snapshot: Snapshot, edit: Edit, why_not: str, silence: Silence) -> None:
    line = snapshot.source.line_of(edit.start) + 1
    silence.add(f"line {line}: the model's edit is not shown, {why_not}", snapshot.uri)


def _is_sure_at_line(found: RewrittenLines, region: Place) -> bool:
    """Whether an edit is sure and in its region's own line."""
    source, edit = region.snapshot.source, found.edit
    first, last = source.line_of(edit.start), source.line_of(max(edit.start, edit.end - 1))
    return found.probability >= MIN_RELATED_PROBABILITY and first <= region.line <= last
