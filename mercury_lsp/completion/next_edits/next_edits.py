"""Offers the next edit: by exact rules, by a rewrite around the cursor or, by key, where an error appeared."""

import logging
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from threading import Event
from time import perf_counter
from typing import NamedTuple

from mercury_lsp.completion.coalescing import Coalescer, Feature, SuggestionRequest
from mercury_lsp.completion.next_edits.edits import joined
from mercury_lsp.completion.next_edits.filters import objection
from mercury_lsp.completion.next_edits.history import Hunk, shown
from mercury_lsp.completion.next_edits.pairs import paired_edits, rest_of_lines
from mercury_lsp.completion.next_edits.places import Place, broken_places, named_place
from mercury_lsp.completion.next_edits.proposals import Ledger, Proposal, Question
from mercury_lsp.completion.next_edits.region_edits import (
    MAX_PLACES,
    OFFERED,
    RegionEdits,
)
from mercury_lsp.completion.next_edits.renaming import Renamings
from mercury_lsp.completion.silence import Silence
from mercury_lsp.completion.suggestions import Renaming, Suggestion
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.documents.redaction import edit_shows_secret
from mercury_lsp.documents.syntax import breaks, breaks_document

logger = logging.getLogger(__name__)

PARSE_SECONDS = 0.5
"""Budget of the parse that checks a renamed document."""

MAX_OFFERED = 8
"""Most places of a renaming that are examined at a time."""

Pauses = Callable[[], Awaitable[bool]]
"""Waits; returns whether the user typed nothing meanwhile."""


class RenamedDocument(NamedTuple):
    """What remains of a renaming in one version of a document, from top to bottom."""

    snapshot: Snapshot
    edits: Sequence[Edit]
    kept: int
    """Number of places left alone because their lines look like secrets."""

    @classmethod
    def of(cls, snapshot: Snapshot, left: Sequence[Edit]) -> "RenamedDocument | None":
        """All edits except in secret lines; None if they would break the document's syntax."""
        ordered = sorted(left, key=lambda each: each.start)
        edits = [each for each in ordered if not edit_shows_secret(snapshot, each.start, each.end, each.inserted)]
        if edits:
            whole = joined(edits, snapshot)
            if breaks_document(snapshot, whole.start, whole.end, whole.inserted, PARSE_SECONDS):
                return None
        return cls(snapshot, edits, len(left) - len(edits))


class NextEdits:
    """Next edits for all open documents of one connection; used on the event loop's thread only."""

    def __init__(self, coalescer: Coalescer):
        self._coalescer = coalescer
        self.ledger = Ledger()
        self._renamings = defaultdict[str, Renamings](lambda: Renamings(self.ledger.is_declined))
        self.regions = RegionEdits(self.ledger)
        self._silences: dict[str, tuple[ChunkedText, int | None, Silence]] = {}
        """Text and cursor of the last question about each document, and why nothing else was found."""

    def edited(self, uri: str, edits: Sequence[Edit]) -> None:
        """Record edits, in order."""
        self._renamings[uri].record(edits)
        self.ledger.edited(uri, edits)

    def highlighted(self, snapshot: Snapshot, places: Iterable[tuple[int, int, bool]]) -> None:
        """Another server reports the places of the name at the cursor: start, end, and whether it is assigned there."""
        self._renamings[snapshot.uri].told(snapshot, places)

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._renamings.pop(uri, None)
        self._silences.pop(uri, None)
        self.regions.ahead.drop()

    def reasons(self, uri: str) -> list[str]:
        """Why the last question about a document found nothing, or why other edits were not shown."""
        return [*self._silences[uri][2].reasons] if uri in self._silences else []

    def is_known(self, asked: Question) -> bool:
        """Whether the rules have an edit to show by key; asks no model."""
        return next(self._proposals(asked), None) is not None

    def goes_on(self, asked: Question) -> bool:
        """Whether the user has just made a change for the second time that fits elsewhere, too; asks no model."""
        return next(self._paired(asked), None) is not None

    def at_cursor(self, asked: Question) -> Suggestion | None:
        """The rest, from the cursor on, of lines that the user inserted twice and now begins again; asks no model."""
        line, start = asked.snapshot.line_at(cursor := asked.cursor or 0)
        begun = line[: cursor - start].strip()
        if sum(hunk.after.count(begun) for hunk in asked.hunks) < 3:  # cheaper than to find out what each hunk inserted
            return None
        rest = rest_of_lines(asked.hunks, asked.snapshot)
        if rest is None or rest.start != cursor:
            return None
        return next(iter(_ghosts(self._by_rules(asked), asked)), None)

    def worked_out(self, asked: Question) -> Question:
        """The question for `insertion`, with what the rules propose worked out; takes half a millisecond."""
        asked = replace(asked, silence=self._silence(asked))
        if not asked.hunks or not asked.snapshot.is_parsed:
            return asked
        return replace(asked, proposed=[self._proposed(asked)])

    async def insertion(self, asked: Question, pauses: Pauses) -> list[Suggestion]:
        """The next edit as ghost text, if it only inserts at the cursor; by rules or, if the user `pauses`, by a model.

        Raises as `find`.
        """
        if not (asked.hunks or self.regions.writes_edits()) or not asked.snapshot.is_parsed:
            return []
        found = self._known(asked)
        if not found and self.regions.rewrite is not None and await pauses():
            found = await self._at_hand(asked, self.regions.at_hand(asked))
        return _ghosts(found, asked)

    def place(self, asked: Question) -> Place | None:
        """The place that the user probably edits next: a line with a new error, or else another use of a name."""
        broken = broken_places(asked.documents, asked.hunks, asked.errors)
        return next(broken, None) or named_place(asked.documents, asked.hunks)

    def renaming(self, asked: Question) -> Renaming | None:
        """The renaming in progress, if places are left."""
        found = self._last_renaming(asked)
        return found if found is not None and found.left else None

    def _last_renaming(self, asked: Question) -> Renaming | None:
        uri = asked.snapshot.uri
        return self._renamings[uri].under_way(asked.snapshot, asked.changes, asked.undone_in(uri))

    def rename_all(self, asked: Question) -> RenamedDocument | None:
        """The renaming made everywhere except in secret lines; None if there is none or it would break the syntax."""
        renaming = self.renaming(asked)
        return None if renaming is None else RenamedDocument.of(asked.snapshot, renaming.left)

    async def find(self, asked: Question, feature: Feature) -> list[Suggestion]:
        """The next edit, if there is one.

        Raises Cancelled when a newer request supersedes this one, and whatever the engine raises.
        """
        asked = replace(asked, silence=self._silence(asked))
        request = SuggestionRequest(feature, asked.snapshot, asked.cursor, asked.cursor is None, is_next_edit=True)
        self._coalescer.cancel_where(request.supersedes)
        self.regions.ahead.keep_for(asked.snapshot)
        return await self._coalescer.answer(request, partial(self._search, asked))

    def _silence(self, asked: Question) -> Silence:
        """A question's reasons; ghost text and a next edit at the same cursor share a search, and so its reasons."""
        snapshot, cursor = asked.snapshot, asked.cursor
        known = self._silences.get(snapshot.uri)
        if known is None or cursor is None or known[0] is not snapshot.source or known[1] != cursor:
            known = snapshot.source, cursor, Silence(snapshot.uri)
        self._silences[snapshot.uri] = known
        return known[2]

    async def _search(self, asked: Question, cancel: Event) -> list[Suggestion]:
        """The first edit found: by rules, around the cursor, in a related region and, by key, where errors appeared."""
        silence = asked.silence
        if found := self._known(asked):
            return found
        if not asked.snapshot.is_parsed:
            silence.add("the file is still being read")
        at_hand = self.regions.at_hand(asked)
        if found := await self._at_hand(asked, at_hand):
            return found
        is_by_key = asked.cursor is None
        if self.regions.rewrite is None:
            silence.add("the model in use rewrites no regions")
        elif is_by_key or not self.regions.writes_edits():  # such a model was asked around the cursor
            if (region := named_place(asked.documents, asked.hunks, at_hand)) is not None:
                found = await self.regions.related(region, asked, cancel)
            if not found and is_by_key:
                broken = [*islice(broken_places(asked.documents, asked.hunks, asked.errors, at_hand), MAX_PLACES)]
                if not broken:
                    silence.add("no error appeared elsewhere")
                found = await self.regions.first(broken, asked, cancel)
        if not found:
            logger.info("no next edit: %s", "; ".join(silence.reasons))
        return found

    def _known(self, asked: Question) -> list[Suggestion]:
        """The rest of the model's last answer, or the first of the rules' proposals that may be shown."""
        return self.regions.rest(asked) or self._by_rules(asked)

    def _by_rules(self, asked: Question) -> list[Suggestion]:
        """The first of the rules' proposals that may be shown."""
        [found] = asked.proposed or [self._proposed(asked)]
        if found is None:
            return []
        suggestion = found.suggestion()
        self.ledger.offer(suggestion.id, found.snapshot.uri, found.edits)
        return [suggestion.seen_from(asked.snapshot, found.snapshot)]

    async def _at_hand(self, asked: Question, regions: Sequence[Place]) -> list[Suggestion]:
        """The edit in these regions, computed once for ghost text and next edits at the same cursor."""
        request = SuggestionRequest("region", asked.snapshot, asked.cursor, asked.cursor is None, is_next_edit=True)
        return await self._coalescer.answer(request, partial(self.regions.first, regions, asked))

    def _proposed(self, asked: Question) -> Proposal | None:
        """The first of the rules' proposals that may be shown."""
        started = perf_counter()
        found = next(self._proposals(asked), None)
        return None if found is None else replace(found, seconds=perf_counter() - started)

    def _proposals(self, asked: Question) -> Iterator[Proposal]:
        """What the rules find and may be shown, best first, except where the user has just undone a change."""
        return (each for each in self._found(asked) if not asked.is_taken_back(each.snapshot.uri, each.whole))

    def _found(self, asked: Question) -> Iterator[Proposal]:
        """What the rules find, best first: changes made twice, then renamings."""
        if self.regions.made_last_change(asked.snapshot):
            return
        renaming = self._last_renaming(asked)
        if asked.cursor is not None and self._renamings[asked.snapshot.uri].is_unfinished(asked.cursor):
            asked.silence.add("the name at the cursor is still being typed")
        elif renaming is None or self._is_for_writer(renaming, asked.hunks):
            yield from self._paired(asked)
        else:
            yield from self._with_renaming(renaming, asked)

    def _with_renaming(self, renaming: Renaming, asked: Question) -> Iterator[Proposal]:
        """Changes made twice, then what remains of a renaming if it must go on or the user asks by key.

        Changes made twice that rename the same come last, or not at all if another language server told the places.
        """
        goes_on, same = renaming.must_go_on or asked.cursor is None, list[Proposal]()
        if renaming.left and not goes_on:
            why = f"{renaming.old} was changed where it is only used"
            asked.silence.add(f"{why}; by key its {renaming.remaining} other places follow")
        for each in self._paired(asked):
            is_same = (each.whole.removed, each.whole.inserted) == (renaming.old, renaming.new)
            if renaming.must_go_on and is_same and each.snapshot.uri == asked.snapshot.uri:
                same.append(each)
            else:
                yield each
        if goes_on:
            yield from _renamed_lines(renaming, asked)
        yield from () if renaming.is_told else same

    def _is_for_writer(self, renaming: Renaming, hunks: Sequence[Hunk]) -> bool:
        """Whether more changed than a name, as in `item: Item` to `items: list[Item]`, and a model trained on edits can
        tell what that means for the name's other places.
        """
        name = rf"\b{re.escape(renaming.old)}\b"
        is_all = any(re.sub(name, renaming.new, each.before) == each.after for each in hunks)
        return self.regions.writes_edits() and not is_all

    def _paired(self, asked: Question) -> Iterator[Proposal]:
        """The last change in its next places, if the user has made it twice."""
        hunks = asked.hunks
        documents = asked.documents if hunks else []
        origin = next((each for each, _ in documents if each.uri == hunks[-1].uri), None)
        if origin is None:
            return
        for snapshot, _ in documents:
            is_wanted = asked.cursor is None or snapshot.uri == asked.snapshot.uri != origin.uri  # they went there
            for hunk, edit in paired_edits(hunks, snapshot, origin, is_wanted):
                is_declined = self.ledger.is_declined(snapshot.uri, edit)
                why_not = OFFERED if is_declined else objection(snapshot, edit, hunks)
                if why_not is None and shown([hunk], snapshot.uri):
                    yield Proposal(snapshot, (edit,))
                elif why_not is not None:
                    line = snapshot.source.line_of(edit.start) + 1
                    why = f"line {line}: what you did twice is not done there, {why_not}"
                    asked.silence.add(why, snapshot.uri)


def _renamed_lines(renaming: Renaming, asked: Question) -> Iterator[Proposal]:
    """What remains of a renaming, line by line, in the order of the lines' first places."""
    snapshot, lines = asked.snapshot, dict[int, list[Edit]]()
    for each in renaming.left[:MAX_OFFERED]:
        lines.setdefault(snapshot.source.line_of(each.start), []).append(each)
    for line, left in lines.items():
        edits = tuple(sorted(left, key=lambda each: each.start))
        found = Proposal(snapshot, edits, replace(renaming, offered=len(edits)))
        edit = found.whole
        if breaks(snapshot, edit.start, edit.end, edit.inserted):
            asked.silence.add(f"line {line + 1}: a rule's edit would break the syntax")
        elif edit_shows_secret(snapshot, edit.start, edit.end, edit.inserted):
            asked.silence.add(f"line {line + 1}: lines like secrets are not edited")
        else:
            yield found


def _ghosts(found: Iterable[Suggestion], asked: Question) -> list[Suggestion]:
    """The suggestions that only insert at the cursor."""
    cursor = asked.cursor or 0
    return [ghost for each in found if (ghost := each.as_ghost_text(asked.snapshot, cursor)) is not None]
