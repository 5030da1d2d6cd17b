"""Requests rewrites of regions, first around the cursor and the last change, and picks the first edit to show."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from time import perf_counter

from mercury_engine.api import EditHunk
from mercury_engine.utility import Utility

from mercury_lsp.completion.next_edits.ahead import Ahead
from mercury_lsp.completion.next_edits.change import Change
from mercury_lsp.completion.next_edits.edit_sites import EditSite, joined
from mercury_lsp.completion.next_edits.filters import BREAKS, followed, objection
from mercury_lsp.completion.next_edits.history import Hunk, shown
from mercury_lsp.completion.next_edits.ledger import Ledger
from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.completion.next_edits.proposals import Proposal
from mercury_lsp.completion.next_edits.rewriting import RewrittenLines
from mercury_lsp.completion.price import OF_EDITS, least_probability_of_edit
from mercury_lsp.completion.silence import Silence
from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.chunked_text import ChunkedText, with_line_feeds
from mercury_lsp.documents.document import Document, Snapshot

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
    taken_back: tuple[str, int, int] | None = None
    """URI, start and end of the text in which the user has just undone a change."""
    changes: Sequence[Change] = ()
    """The user's changes of this document, oldest first."""
    silence: Silence = field(default_factory=lambda: Silence(""))
    cancel: Event = field(default_factory=Event)
    proposed: Sequence[tuple[Proposal, Suggestion] | None] = ()
    """What the rules propose; empty until it is worked out."""

    @property
    def documents(self) -> Sequence[tuple[Snapshot, str]]:
        """This document, then the others."""
        return [(self.snapshot, self.path), *self.others]

    def is_taken_back(self, uri: str, start: int, end: int) -> bool:
        """Whether the user has just undone a change in this text."""
        if self.taken_back is None:
            return False
        where, first, last = self.taken_back
        return where == uri and start <= last and first <= end


def regions_at_hand(asked: Question) -> list[Place]:
    """The region around the cursor and, if the document's last change is outside, the region around that."""
    snapshot, path, own = asked.snapshot, asked.path, [each for each in asked.hunks if each.uri == asked.snapshot.uri]
    found: list[Place] = []
    if asked.cursor is not None:
        line = snapshot.source.line_of(asked.cursor)
        found.append(replace(Place.around(snapshot, path, line), cursor=asked.cursor))
    if own:
        line = max(own[-1].line, own[-1].end_line - 1)
        if not any(each.covers(line) for each in found):
            found.append(Place.around(snapshot, path, line))
    return found


@dataclass(frozen=True, slots=True)
class _Taken:
    """A document as it will be once the edit on display is accepted, and what is left of the answer then."""

    uri: str
    path: str
    text: str
    left: Sequence[RewrittenLines]


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

    async def related(self, region: Place, asked: Question) -> tuple[Place, Suggestion] | None:
        """A sure edit in the line of a related region, which is rewritten once; raises as `first`."""
        known = region.snapshot.source, region.line, asked.hunks[-1]
        if known == self._in_vain:
            asked.silence.add(
                f"line {region.line + 1}: it was rewritten before, without an edit to show", region.snapshot.uri
            )
            return None
        found = await self.first([region], asked, asked.cancel, is_at_line=True)
        self._in_vain = known if found is None else None
        return found

    def made_last_change(self, snapshot: Snapshot) -> bool:
        """Whether the document's last change was the model's edit, which is no example by the user."""
        return self._left(snapshot) is not None

    def rest(self, asked: Question) -> Suggestion | None:
        """The next edit of an answer whose last one was accepted; asks no model."""
        if not (left := self._left(asked.snapshot)) or self._taken is None:
            return None
        region = replace(Place.around(asked.snapshot, self._taken.path, 0), cursor=asked.cursor)
        return self._picked(region, left, asked, Silence(""), 0.0)

    def _left(self, snapshot: Snapshot) -> Sequence[RewrittenLines] | None:
        """The rest of the last answer; None unless its edit on display was the last change of the document."""
        taken = self._taken
        if taken is None or taken.uri != snapshot.uri or len(taken.text) != snapshot.length:
            return None
        return taken.left if taken.text == snapshot.text else None

    async def first(
        self, regions: Iterable[Place], asked: Question, cancel: Event, is_at_line: bool = False
    ) -> tuple[Place, Suggestion] | None:
        """The first edit of the regions that may be shown, with its region.

        With `is_at_line` only sure edits in the region's own line count. Raises Cancelled, and what the model raises.
        """
        if self.rewrite is None:
            return None
        rewritten, started = list(regions), perf_counter()
        rewrites = [self._rewritten(self.rewrite, each, asked.hunks, cancel) for each in rewritten]
        pick = self._picked if self.writes_edits() else self._followed
        for region, hunks in zip(rewritten, await asyncio.gather(*rewrites), strict=True):
            if not hunks:
                why = "the model changes nothing" if hunks is not None else "the model must not see them"
                where = f"lines {region.start_line + 1} to {region.end_line}"
                asked.silence.add(f"{where}: {why}", region.snapshot.uri)
                continue
            likely = [each for each in hunks if not is_at_line or _is_sure_at_line(each, region)]
            if (found := pick(region, likely, asked, asked.silence, perf_counter() - started)) is not None:
                return region, found
        return None

    def _picked(
        self, region: Place, edits: Sequence[RewrittenLines], asked: Question, silence: Silence, seconds: float
    ) -> Suggestion | None:
        """The first edit to show from a model trained on edits: at or below the cursor's line, or else above. If one
        alone breaks the syntax, all of them are shown as one.
        """
        snapshot, by_key = region.snapshot, region.cursor is None
        edits = [each for each in edits if not asked.is_taken_back(snapshot.uri, each.start, each.end)]
        begin = 0 if region.cursor is None else snapshot.source.line_bounds(region.cursor)[0]
        ordered = [each for each in edits if max(each.start + 1, each.end) > begin]
        ordered += reversed([each for each in edits if each not in ordered])
        reasons = [self._objection(snapshot, each, asked, by_key) for each in ordered]
        if BREAKS in reasons and len(edits) > 1:
            whole = _joined(snapshot, edits)
            if (why_not := self._objection(snapshot, whole, asked, by_key)) is None:
                edits, ordered, reasons = [whole], [whole], [None]
            else:
                silence.add(f"the model's edits are not shown together, {why_not}", snapshot.uri)
        for edit, why_not in zip(ordered, reasons, strict=True):
            if why_not is None:
                text = snapshot.text[: edit.start] + edit.text + snapshot.text[edit.end :]
                left = [_moved(each, edit) for each in edits if each is not edit]
                self._taken = _Taken(snapshot.uri, region.path, text, left)
                found = self._offered(snapshot, edit, seconds)
                self._look_ahead(snapshot, found, asked.hunks)
                return found
            self._hide(snapshot, edit, why_not, silence)
        return None

    def _followed(
        self, region: Place, edits: Sequence[RewrittenLines], asked: Question, silence: Silence, seconds: float
    ) -> Suggestion | None:
        """The first edit that follows from the user's changes, from a model not trained on edits."""
        snapshot, rejected = region.snapshot, -1
        for whole in edits:
            old = snapshot.slice(whole.start, whole.end)
            old, new, strays = followed(old, whole.text, asked.hunks, whole.probability, snapshot.text)
            edit = replace(whole, end=whole.start + len(old), text=new)
            why_not = self._objection_to_follower(snapshot, edit, asked, strays)
            if why_not is None and edit.start == rejected:
                why_not = "it continues one that isn't shown"
            if why_not is None:
                return self._offered(snapshot, edit, seconds)
            rejected = edit.end
            self._hide(snapshot, edit, why_not, silence)
        return None

    def _offered(self, snapshot: Snapshot, edit: RewrittenLines, seconds: float) -> Suggestion:
        found = Suggestion.replacing(snapshot, edit.start, edit.end, edit.text, edit.probability, seconds, "region")
        self._ledger.offer(found.id, snapshot.uri, [_site(snapshot, edit)])
        return found

    @staticmethod
    def _hide(snapshot: Snapshot, edit: RewrittenLines, why_not: str, silence: Silence) -> None:
        line = snapshot.source.line_of(edit.start) + 1
        silence.add(f"line {line}: the model's edit is not shown, {why_not}", snapshot.uri)

    async def _rewritten(
        self, rewrite: RewriteRegion, region: Place, hunks: Sequence[Hunk], cancel: Event
    ) -> Sequence[RewrittenLines] | None:
        """The edits of a region; prepared ones if it was rewritten while the user looked at the last edit."""
        if (found := await self.ahead.taken(region, cancel)) is not None:
            return found
        return await rewrite(region, shown(hunks, region.snapshot.uri), MIN_PROBABILITY, cancel)

    def _look_ahead(self, snapshot: Snapshot, offered: Suggestion, hunks: Sequence[Hunk]) -> None:
        """Begin to rewrite around the end of the edit on display, as if accepted, if it is its answer's last one."""
        taken, rewrite = self._taken, self.rewrite
        if taken is None or taken.left or rewrite is None or not self.looks_ahead():
            return
        after = Document(snapshot.uri, snapshot.language_id, snapshot.version + 1, taken.text).snapshot()
        start, end = snapshot.offset_at(*offered.start), snapshot.offset_at(*offered.end)
        cursor = start + len(offered.text)  # where editors put it
        region = replace(Place.around(after, taken.path, after.source.line_of(cursor)), cursor=cursor)
        made = EditHunk(start, *map(with_line_feeds, (snapshot.slice(start, end), offered.text)))
        history = [*shown(hunks, snapshot.uri), made]
        self.ahead.begin(snapshot, region, lambda cancel: rewrite(region, history, MIN_PROBABILITY, cancel))

    def _objection(self, snapshot: Snapshot, edit: RewrittenLines, asked: Question, by_key: bool) -> str | None:
        """Why an edit of a model trained on edits is not shown."""
        old, gate = snapshot.slice(edit.start, edit.end), self.gate(snapshot.language_id)
        least = 0.0 if by_key else least_probability_of_edit(old, edit.text, gate)
        if edit.probability < least:
            return f"its probability is {edit.probability:.2f}, below the {least:.2f} from which it is worth showing"
        if self._ledger.is_declined(snapshot.uri, _site(snapshot, edit)):
            return OFFERED
        return objection(snapshot, edit.start, edit.end, edit.text, asked.hunks, edit.at_risk)

    def _objection_to_follower(
        self, snapshot: Snapshot, edit: RewrittenLines, asked: Question, strays: str | None
    ) -> str | None:
        if edit.probability < MIN_PROBABILITY:
            return f"its probability is {edit.probability:.2f}, below {MIN_PROBABILITY}"
        if asked.is_taken_back(snapshot.uri, edit.start, edit.end):
            return "you have just undone a change there"
        if self._ledger.is_declined(snapshot.uri, _site(snapshot, edit)):
            return OFFERED
        return strays or objection(snapshot, edit.start, edit.end, edit.text, asked.hunks)


def _site(snapshot: Snapshot, edit: RewrittenLines) -> EditSite:
    return EditSite(edit.start, snapshot.slice(edit.start, edit.end), edit.text)


def _moved(edit: RewrittenLines, before: RewrittenLines) -> RewrittenLines:
    """An edit after another one was made."""
    grown = len(before.text) - (before.end - before.start)
    return edit if edit.start < before.start else replace(edit, start=edit.start + grown, end=edit.end + grown)


def _joined(snapshot: Snapshot, edits: Sequence[RewrittenLines]) -> RewrittenLines:
    """Edits, from the top down, as one."""
    whole = joined([_site(snapshot, each) for each in edits], snapshot)
    probability = min(each.probability for each in edits)
    return RewrittenLines(whole.start, whole.end, whole.new, probability, edits[0].at_risk)


def _is_sure_at_line(hunk: RewrittenLines, region: Place) -> bool:
    """Whether an edit is sure and in its region's own line."""
    source = region.snapshot.source
    first, last = source.line_of(hunk.start), source.line_of(max(hunk.start, hunk.end - 1))
    return hunk.probability >= MIN_RELATED_PROBABILITY and first <= region.line <= last
