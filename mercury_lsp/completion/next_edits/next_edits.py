"""Offers the next edit: what the rules find and the model agrees to, or else a place that the model rewrites."""

from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from threading import Event
from typing import Any, TypeVar

from mercury_lsp.completion.coalescing import Coalescer, Feature, SharedAnswer, SuggestionRequest
from mercury_lsp.completion.next_edits.awaiting import awaiting_sites, made_async, unmarked
from mercury_lsp.completion.next_edits.checks import is_complete, only_moves_white_space, reverts
from mercury_lsp.completion.next_edits.edit_sites import EditSite
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.next_edits.judging import MIN_PROBABILITY, MIN_REPEATED_PROBABILITY, hunk_block
from mercury_lsp.completion.next_edits.keyed_values import naming_values, renamed_keys
from mercury_lsp.completion.next_edits.mirroring import mirrored
from mercury_lsp.completion.next_edits.new_parameters import body_sites
from mercury_lsp.completion.next_edits.next_place import apart, broken_places
from mercury_lsp.completion.next_edits.offers_by_example import OffersByExample
from mercury_lsp.completion.next_edits.proposals import Proposal, ScoreTexts, by_evidence, first_likely, likely_by_place
from mercury_lsp.completion.next_edits.renaming import RenamedDocument, Renaming, renamed
from mercury_lsp.completion.next_edits.repeatable_edits import RepeatableEdits
from mercury_lsp.completion.next_edits.repeated_change import NOTHING_CLOSED, Closed, Others, RepeatedChange
from mercury_lsp.completion.next_edits.replacement import Replacement
from mercury_lsp.completion.next_edits.rewritten_places import NO_SURROUNDINGS, RewrittenPlaces, Surroundings
from mercury_lsp.completion.next_edits.siblings import additions, sibling_sites
from mercury_lsp.completion.next_edits.signatures import call_sites, signatures
from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Edit, Snapshot

SITES_JUDGED_UNASKED = 4
"""Sites that the model judges when the editor asks on its own; 0.15 s each with a warm KV cache."""

T = TypeVar("T")


class NextEdits:
    """Next edits for all open documents of one connection; to be used from the event loop's thread."""

    def __init__(self, coalescer: Coalescer, score: ScoreTexts):
        self._coalescer, self._score = coalescer, score
        self._documents: dict[str, RepeatableEdits] = {}
        self.rewritten_places = RewrittenPlaces()
        self.by_example = OffersByExample()

    def edited(self, uri: str, edits: Sequence[Edit]) -> None:
        """Record edits, in order."""
        repeatable = self._documents.pop(uri, None) or RepeatableEdits()
        self._documents[uri] = repeatable  # the last one is the one changed last
        repeatable.record(edits)
        self.rewritten_places.edited(uri, edits)
        self.by_example.edited(uri, edits)

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._documents.pop(uri, None)

    def dismissed(self, suggestion_id: str) -> None:
        """The user dismissed an offered edit."""
        self.rewritten_places.dismiss(suggestion_id)
        self.by_example.dismiss(suggestion_id)
        for repeatable in self._documents.values():
            repeatable.dismiss(suggestion_id)

    def has_candidates(
        self,
        snapshot: Snapshot,
        path: str = "",
        others: Others = (),
        around: Surroundings = NO_SURROUNDINGS,
        closed: Closed = NOTHING_CLOSED,
    ) -> bool:
        """Whether the rules find a site, should the user ask."""
        return next(self._proposals(snapshot, path, None, others, around, closed), None) is not None

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

        `others` are documents, with their paths, in which a renaming may be offered too; `closed` are files.
        `cursor` is the cursor's offset if the editor asks on its own, None if the user does. Where the rules offer
        nothing, and a model rewrites regions, the `surroundings` say which. Raises Cancelled when a newer request
        supersedes this one, and whatever the engine raises.
        """
        invoked = cursor is None
        around = surroundings() if surroundings is not None else NO_SURROUNDINGS
        rank = cache(around.rank)
        proposals = list(self._proposals(snapshot, path, cursor, others(), around, closed))
        proposals = by_evidence(proposals, around.evidence)
        if not invoked and any(each.is_guess for each in proposals):
            proposals = likely_by_place(proposals, rank())
        if proposals:
            most, cancel = len(proposals) if invoked else SITES_JUDGED_UNASKED, Event()
            request = SuggestionRequest(feature, snapshot, proposals[0].site.start, invoked, is_next_edit=True)
            judging = partial(first_likely, proposals, most, self._score, snapshot, cancel)
            if found := await self._answer(request, judging, cancel):
                return found
        if self.rewritten_places.rewrite is None:
            return []
        cancel = Event()
        likely = apart(broken_places([(snapshot, path)], around.hunks, around.evidence))
        if (ranked := rank()) is not None:
            likely += [each for each in ranked.best if not any(other.covers(each.line) for other in likely)]
        places = self.rewritten_places.open(snapshot, likely, invoked)
        if not places:
            return []
        at = snapshot.offset_at(places[0].line, 0)
        request = SuggestionRequest(feature, snapshot, at, invoked, is_next_edit=True)
        return await self._answer(request, partial(self.rewritten_places.first, places, around, cancel), cancel)

    async def _answer(
        self, request: SuggestionRequest, search: Callable[[], Coroutine[Any, Any, list[Suggestion]]], cancel: Event
    ) -> list[Suggestion]:
        """What a search finds; an equal request under way shares it, and older ones are cancelled."""
        self._coalescer.cancel_where(request.supersedes)
        return await self._coalescer.answer(request, lambda: SharedAnswer.of(search(), cancel))

    def _proposals(
        self,
        snapshot: Snapshot,
        path: str,
        cursor: int | None,
        others: Others,
        around: Surroundings,
        closed: Closed,
    ) -> Iterator[Proposal]:
        """What the rules find, best first, but what only moves white space or what the user has just taken back."""
        for each in self._found(snapshot, path, cursor, others, around.hunks, closed):
            site = each.site
            is_back = around.is_taken_back(each.snapshot.uri, site.start, site.end)
            if not is_back and not only_moves_white_space(site.old, site.new):
                yield each

    def _found(
        self,
        snapshot: Snapshot,
        path: str,
        cursor: int | None,
        others: Others,
        hunks: Sequence[Hunk],
        closed: Closed,
    ) -> Iterator[Proposal]:
        """What the rules find, best first; a misspelt name is corrected before anything else is offered."""
        repeatable = self._documents.get(snapshot.uri)
        replacement = None
        if repeatable is not None:
            if (site := repeatable.correction(snapshot)) is not None:
                offered = partial(repeatable.offer_correction, site=site)
                yield Proposal(snapshot, path, site, offered, is_guess=False)
                return
            replacement = repeatable.replacement(snapshot)
            if replacement is not None and cursor is not None and repeatable.is_unfinished(replacement, cursor):
                return
            if replacement is not None:
                step = RepeatedChange(repeatable, replacement, snapshot, path, others, closed)
                yield from step.here(invoked=cursor is None)
                yield from step.elsewhere()
        if (begun := self._origin(snapshot, replacement, others)) is not None:
            around = [(snapshot, path), *(each for each in others if each[0].uri != begun.snapshot.uri)]
            yield from replace(begun, others=around, closed=closed).elsewhere()
        if hunks and hunks[-1].uri == snapshot.uri and not is_complete(hunks[-1], snapshot):
            return
        documents = [(snapshot, path), *others]
        taken = self._following(documents, hunks, signatures, body_sites)
        called = self._following(documents, hunks, signatures, call_sites)
        listed = self._following(documents, hunks, additions, sibling_sites)
        naming = self._following(documents, hunks, renamed_keys, naming_values)
        for proposal in chain(
            taken, called, self._awaiting(documents, hunks), naming, listed, self._mirrored(documents, hunks)
        ):
            if not self.by_example.is_declined(proposal.snapshot.uri, proposal.site):
                yield proposal

    def _following(
        self,
        documents: Others,
        hunks: Sequence[Hunk],
        examples: Callable[[Sequence[Hunk], Snapshot], Iterator[T]],
        sites: Callable[[T, Sequence[Hunk], Snapshot], Iterator[EditSite]],
    ) -> Iterator[Proposal]:
        """The sites in all documents that follow an example in the latest hunk's document."""
        origin = next((snapshot for snapshot, _ in documents if hunks and snapshot.uri == hunks[-1].uri), None)
        for example in examples(hunks, origin) if origin is not None else ():
            for snapshot, path in documents:
                for site in sites(example, hunks, snapshot):
                    yield self._by_example(snapshot, path, site, "", 0.0)

    def _awaiting(self, documents: Others, hunks: Sequence[Hunk]) -> Iterator[Proposal]:
        """The functions in all documents that must become async, and the calls that must be awaited."""
        for snapshot, path in documents:
            for site in unmarked(hunks, snapshot):
                yield self._by_example(snapshot, path, site, "", 0.0)
        changed = [snapshot for snapshot, _ in documents if any(each.uri == snapshot.uri for each in hunks)]
        for function in chain.from_iterable(made_async(hunks, each) for each in changed):
            for snapshot, path in documents:
                for site in awaiting_sites(function, hunks, snapshot):
                    yield self._by_example(snapshot, path, site, "", 0.0)

    def _mirrored(self, documents: Others, hunks: Sequence[Hunk]) -> Iterator[Proposal]:
        """The changes of the latest hunks in lines like theirs."""
        for snapshot, path in documents:
            for found in mirrored(hunks, snapshot):
                is_own = found.hunk.uri == snapshot.uri
                least = MIN_REPEATED_PROBABILITY if found.examples > 1 and is_own else MIN_PROBABILITY
                block = hunk_block(found.hunk, snapshot.uri)
                for site in found.sites if block else ():
                    if not reverts(snapshot, site.start, site.old, site.new, hunks):
                        yield self._by_example(snapshot, path, site, block, least)

    def _by_example(self, snapshot: Snapshot, path: str, site: EditSite, block: str, least: float) -> Proposal:
        offered = partial(self.by_example.offer, uri=snapshot.uri, site=site)
        return Proposal(snapshot, path, site, offered, block, least, is_guess=False)

    def _origin(self, snapshot: Snapshot, replacement: Replacement | None, others: Others) -> "RepeatedChange | None":
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
