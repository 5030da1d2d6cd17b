"""Offers the next edit: by exact rules, in the region at hand, by rules that guess, or at a likely place."""

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from threading import Event

from mercury_lsp.completion.coalescing import Coalescer, Feature, SharedAnswer, SuggestionRequest
from mercury_lsp.completion.next_edits.checks import is_complete, only_moves_white_space
from mercury_lsp.completion.next_edits.filters import objection
from mercury_lsp.completion.next_edits.judging import MIN_PROBABILITY, MIN_REPEATED_PROBABILITY, hunk_block
from mercury_lsp.completion.next_edits.ledger import Ledger
from mercury_lsp.completion.next_edits.line_pairs import next_lines
from mercury_lsp.completion.next_edits.mirroring import mirrored
from mercury_lsp.completion.next_edits.next_place import apart, broken_places
from mercury_lsp.completion.next_edits.places import Place, RankedPlaces
from mercury_lsp.completion.next_edits.proposals import Proposal, ScoreTexts, by_evidence, first_likely, likely_by_place
from mercury_lsp.completion.next_edits.region_edits import (
    MAX_PLACES,
    MIN_PLACE_CHANCE,
    NO_SURROUNDINGS,
    RegionEdits,
    Surroundings,
    regions_at_hand,
)
from mercury_lsp.completion.next_edits.renaming import RenamedDocument, Renaming, renamed
from mercury_lsp.completion.next_edits.repeatable_edits import RepeatableEdits
from mercury_lsp.completion.next_edits.repeated_change import NOTHING_CLOSED, Closed, Others, RepeatedChange
from mercury_lsp.completion.next_edits.replacement import Replacement
from mercury_lsp.completion.next_edits.signatures import call_sites, signatures
from mercury_lsp.completion.suggestions import Source, Suggestion
from mercury_lsp.documents.document import Edit, Snapshot

logger = logging.getLogger(__name__)

SITES_JUDGED_UNASKED = 4
"""Sites that the model judges when the editor asks on its own; 0.15 s each with a warm KV cache."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked for one version of a document."""

    snapshot: Snapshot
    path: str
    cursor: int | None
    """None if the user asks."""
    others: Others
    around: Surroundings
    closed: Closed = NOTHING_CLOSED
    cancel: Event = field(default_factory=Event)

    @property
    def cursor_line(self) -> int | None:
        return None if self.cursor is None else self.snapshot.source.line_of(self.cursor)

    @property
    def documents(self) -> Others:
        return [(self.snapshot, self.path), *self.others]


class NextEdits:
    """Next edits for all open documents of one connection; to be used from the event loop's thread."""

    def __init__(self, coalescer: Coalescer, score: ScoreTexts):
        self._coalescer, self._score = coalescer, score
        self._documents: dict[str, RepeatableEdits] = {}
        self._ledger = Ledger()
        self.regions = RegionEdits(self._ledger)
        self.silence: list[str] = []
        """Why the last question had no answer, or why others than the answer were not shown."""

    def edited(self, uri: str, edits: Sequence[Edit]) -> None:
        """Record edits, in order."""
        repeatable = self._documents.pop(uri, None) or RepeatableEdits(self._ledger.is_declined)
        self._documents[uri] = repeatable  # the last one is the one changed last
        repeatable.record(edits)
        self._ledger.edited(uri, edits)

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._documents.pop(uri, None)

    def dismissed(self, suggestion_id: str) -> None:
        """The user dismissed an offered edit."""
        self._ledger.dismiss(suggestion_id)

    def has_candidates(
        self,
        snapshot: Snapshot,
        path: str = "",
        others: Others = (),
        around: Surroundings = NO_SURROUNDINGS,
        closed: Closed = NOTHING_CLOSED,
    ) -> bool:
        """Whether rules or a model may find an edit, should the user ask."""
        if self.regions.rewrite is not None and around.hunks:
            return True
        return next(self._proposals(_Question(snapshot, path, None, others, around, closed)), None) is not None

    def renamed_declaration(self, snapshot: Snapshot, others: Others, cursor: int | None) -> tuple[str, str] | None:
        """The old name, and the document's uri, of a renaming that files that aren't open may need, too.

        None if there is none, or if the user is still typing the new name at the cursor.
        """
        repeatable, replacement = self._documents.get(snapshot.uri), None
        if repeatable is not None and (replacement := repeatable.replacement(snapshot)) is not None:
            if cursor is not None and repeatable.is_unfinished(replacement, cursor):
                return None
            if repeatable.reaches_out(replacement, snapshot):
                return replacement.old, snapshot.uri
        if (step := self._origin(snapshot, replacement, others)) is None:
            return None
        reaches_out = step.repeatable.reaches_out(step.replacement, step.snapshot)
        return (step.replacement.old, step.snapshot.uri) if reaches_out else None

    def remaining(self, snapshot: Snapshot, path: str = "", others: Others = ()) -> Renaming | None:
        """The renaming that the last change began, if places are left in the document or in others with their paths."""
        if (repeatable := self._documents.get(snapshot.uri)) is None:
            return None
        replacement = repeatable.replacement(snapshot)
        found = repeatable.renaming(replacement, snapshot, path, others) if replacement is not None else None
        return found if found is not None and found.remaining else None

    def rename_all(self, snapshot: Snapshot, path: str, others: Others) -> list[RenamedDocument]:
        """The last renaming made everywhere: in its document, and in `others` (with their paths) that have the name.

        Empty if there is none, or if it would break the syntax of a document.
        """
        if (renaming := self.remaining(snapshot, path, others)) is None:
            return []
        found = [renamed(snapshot, renaming.left), *(renamed(each.snapshot, each.sites) for each in renaming.elsewhere)]
        made = [each for each in found if each is not None and (each.sites or each.kept)]
        return made if None not in found else []

    async def find(
        self,
        snapshot: Snapshot,
        path: str,
        feature: Feature,
        cursor: int | None,
        surroundings: Callable[[], Surroundings] | None = None,
        others: Callable[[], Others] = tuple,
        closed: Closed = NOTHING_CLOSED,
    ) -> list[Suggestion]:
        """The next edit, if there is one; the model sees `path` in a comment.

        `others` are documents, with their paths, in which edits may be offered too; `closed` are files. `cursor` is the
        cursor's offset if the editor asks on its own, None if the user does. Raises Cancelled when a newer request
        supersedes this one, and whatever the engine raises.
        """
        around = surroundings() if surroundings is not None else NO_SURROUNDINGS
        asked = _Question(snapshot, path, cursor, others(), around, closed)
        request = SuggestionRequest(feature, snapshot, cursor or 0, cursor is None, is_next_edit=True)
        self._coalescer.cancel_where(request.supersedes)
        return await self._coalescer.answer(request, lambda: SharedAnswer.of(self._search(asked), asked.cancel))

    async def _search(self, asked: _Question) -> list[Suggestion]:
        """What is found first: by exact rules, in the region at hand, by rules that guess, at likely places."""
        self.silence = silence = list[str]()
        rank = cache(asked.around.rank)
        proposals = by_evidence(list(self._proposals(asked)), asked.around.evidence)
        exact = [each for each in proposals if not each.is_guess]
        guesses = [each for each in proposals if each.is_guess]
        at_hand = regions_at_hand(asked.snapshot, asked.path, asked.cursor_line, asked.around.hunks)
        steps: Sequence[Callable[[], Awaitable[list[Suggestion]]]] = (
            partial(self._by_rules, asked, exact),
            partial(self._by_model, asked, at_hand, "region"),
            lambda: self._by_rules(asked, guesses if asked.cursor is None else likely_by_place(guesses, rank())),
            lambda: self._by_model(asked, self._places(asked, at_hand, rank()), "place"),
        )
        for step in steps:
            if found := await step():
                return found
        if self.regions.rewrite is None:
            silence.append("the model in use rewrites no regions")
        logger.info("no next edit: %s", "; ".join(silence))
        return []

    async def _by_rules(self, asked: _Question, proposals: Sequence[Proposal]) -> list[Suggestion]:
        """The first of the rules' proposals that the model finds likely enough."""
        most = len(proposals) if asked.cursor is None else SITES_JUDGED_UNASKED
        found = await first_likely(proposals, most, self._score, self.silence, asked.cancel) if proposals else None
        if found is None:
            return []
        proposal, suggestion = found
        self._ledger.offer(suggestion.id, proposal.snapshot.uri, proposal.sites)
        return [
            suggestion
            if proposal.snapshot.uri == asked.snapshot.uri
            else replace(suggestion, elsewhere=proposal.snapshot)
        ]

    async def _by_model(self, asked: _Question, regions: Sequence[Place], source: Source) -> list[Suggestion]:
        """The first edit of the regions' rewrites that may be shown."""
        if not asked.around.hunks or not regions:
            return []
        found = await self.regions.first(regions, asked.around, asked.cursor_line, source, self.silence, asked.cancel)
        if found is None:
            return []
        region, suggestion = found
        return [
            suggestion if region.snapshot.uri == asked.snapshot.uri else replace(suggestion, elsewhere=region.snapshot)
        ]

    def _places(self, asked: _Question, at_hand: Sequence[Place], ranked: RankedPlaces | None) -> list[Place]:
        """Places elsewhere that are worth a rewrite: lines in which an error appeared, and the likeliest ones."""
        sources = [snapshot.source for snapshot, _ in asked.documents]
        likely = apart(broken_places(asked.documents, asked.around.hunks, asked.around.evidence))
        likely += [each for each in (ranked.best if ranked is not None else []) if each.chance >= MIN_PLACE_CHANCE]
        found: list[Place] = []
        for each in likely:
            near = [other for other in (*at_hand, *found) if other.snapshot.uri == each.snapshot.uri]
            if each.snapshot.source in sources and not any(other.covers(each.line) for other in near):
                found.append(each)
        if not found:
            self.silence.append("no other place is likely")
        return found[:MAX_PLACES]

    def _proposals(self, asked: _Question) -> Iterator[Proposal]:
        """What the rules find, best first, but what only moves white space or what the user has just taken back."""
        for each in self._found(asked):
            uri, first, last = each.snapshot.uri, each.sites[0], each.sites[-1]
            is_back = asked.around.is_taken_back(uri, first.start, last.end)
            if not is_back and not all(only_moves_white_space(site.old, site.new) for site in each.sites):
                yield each

    def _found(self, asked: _Question) -> Iterator[Proposal]:
        """What the rules find, best first."""
        snapshot, replacement = asked.snapshot, None
        repeatable = self._documents.get(snapshot.uri)
        if repeatable is not None and (replacement := repeatable.replacement(snapshot)) is not None:
            if asked.cursor is not None and repeatable.is_unfinished(replacement, asked.cursor):
                return
            step = RepeatedChange(repeatable, replacement, snapshot, asked.path, asked.others, asked.closed)
            yield from step.here(invoked=asked.cursor is None)
            yield from step.elsewhere()
        if (begun := self._origin(snapshot, replacement, asked.others)) is not None:
            around = [each for each in asked.documents if each[0].uri != begun.snapshot.uri]
            yield from replace(begun, others=around, closed=asked.closed).elsewhere()
        if self._is_complete(asked):
            for each in chain(self._called(asked), self._in_next_line(asked), self._mirrored(asked)):
                if not self._ledger.is_declined(each.snapshot.uri, each.sites[0]):
                    yield each

    @staticmethod
    def _is_complete(asked: _Question) -> bool:
        """Whether the last change parses, if it was made in the document at hand."""
        hunks = asked.around.hunks
        return not hunks or hunks[-1].uri != asked.snapshot.uri or is_complete(hunks[-1], asked.snapshot)

    def _called(self, asked: _Question) -> Iterator[Proposal]:
        """Calls that follow a changed parameter list in the latest hunk's document."""
        hunks = asked.around.hunks
        origin = next((each for each, _ in asked.documents if hunks and each.uri == hunks[-1].uri), None)
        for signature in signatures(hunks, origin) if origin is not None else ():
            for snapshot, path in asked.documents:
                for site in call_sites(signature, hunks, snapshot):
                    yield Proposal(snapshot, path, (site,), "", 0.0, is_guess=False)

    def _in_next_line(self, asked: _Question) -> Iterator[Proposal]:
        """The replacement that the user has made in two lines beside each other, in the next one."""
        for hunk, site in next_lines(asked.around.hunks, asked.snapshot):
            if block := hunk_block(hunk, asked.snapshot.uri):
                least = MIN_REPEATED_PROBABILITY
                yield Proposal(asked.snapshot, asked.path, (site,), block, least, is_guess=False)

    def _mirrored(self, asked: _Question) -> Iterator[Proposal]:
        """The changes of the latest hunks in lines like theirs; of one example it is a guess."""
        hunks = asked.around.hunks
        for snapshot, path in asked.documents:
            for found in mirrored(hunks, snapshot):
                is_pair = found.examples > 1 and found.hunk.uri == snapshot.uri
                least = MIN_REPEATED_PROBABILITY if is_pair else MIN_PROBABILITY
                block = hunk_block(found.hunk, snapshot.uri)
                for site in found.sites if block else ():
                    if objection(snapshot, site.start, site.end, site.new, hunks) is None:
                        yield Proposal(snapshot, path, (site,), block, least, is_guess=not is_pair)

    def _origin(self, snapshot: Snapshot, replacement: Replacement | None, others: Others) -> RepeatedChange | None:
        """The renaming begun in the document changed before this one, unless something else was changed here since."""
        uris = [uri for uri in self._documents if uri != snapshot.uri]
        origin = next((each for each in others if uris and each[0].uri == uris[-1]), None)
        if origin is None:
            return None
        repeatable, start = self._documents[uris[-1]], origin[0]
        begun = repeatable.replacement(start)
        is_edited_since = list(self._documents)[-1] == snapshot.uri
        if begun is None or (is_edited_since and (replacement is None or not replacement.is_same(begun))):
            return None
        return RepeatedChange(repeatable, begun, *origin, ())
