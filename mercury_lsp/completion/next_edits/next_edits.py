"""Offers the last change at the next site where the model finds the new text likely enough."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from time import perf_counter
from typing import Any

from mercury_engine.api import FillRequest

from mercury_lsp.completion.coalescing import Coalescer, Feature, SharedAnswer, SuggestionRequest
from mercury_lsp.completion.next_edits.edit_sites import EditSite
from mercury_lsp.completion.next_edits.judging import MIN_PROBABILITY, probability_of_new, scoring_request
from mercury_lsp.completion.next_edits.renaming import RenamedDocument, Renaming, renamed, sites_elsewhere
from mercury_lsp.completion.next_edits.repeatable_edits import RepeatableEdits
from mercury_lsp.completion.next_edits.replacement import Replacement
from mercury_lsp.completion.next_edits.rewritten_places import RewrittenPlaces, Surroundings
from mercury_lsp.completion.suggestions import RenamingProgress, Suggestion
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.documents.syntax import breaks

SITES_JUDGED_UNASKED = 4
"""Sites that the model judges when the editor asks on its own; 0.15 s each with a warm KV cache."""

ScoreTexts = Callable[[FillRequest, Sequence[str]], Awaitable[list[float] | None]]


@dataclass(frozen=True, slots=True)
class _Search:
    """A replacement, its sites, and the version of the document they are in."""

    repeatable: RepeatableEdits
    replacement: Replacement
    sites: Sequence[EditSite]
    snapshot: Snapshot
    path: str
    cancel: Event = field(default_factory=Event)


class NextEdits:
    """Next edits for all open documents of one connection; to be used from the event loop's thread."""

    def __init__(self, coalescer: Coalescer, score: ScoreTexts):
        self._coalescer, self._score = coalescer, score
        self._documents: dict[str, RepeatableEdits] = {}
        self.rewritten_places = RewrittenPlaces()

    def edited(self, uri: str, edits: Sequence[Edit]) -> None:
        """Record edits, in order."""
        self._documents.setdefault(uri, RepeatableEdits()).record(edits)
        self.rewritten_places.edited(uri, edits)

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._documents.pop(uri, None)

    def dismissed(self, suggestion_id: str) -> None:
        """The user dismissed an offered edit."""
        self.rewritten_places.dismiss(suggestion_id)
        for repeatable in self._documents.values():
            repeatable.dismiss(suggestion_id)

    def has_candidates(self, snapshot: Snapshot) -> bool:
        """Whether the rules find a site, should the user ask."""
        return bool((search := self._search(snapshot, invoked=True)) and search.sites)

    def remaining(self, snapshot: Snapshot) -> Renaming | None:
        """The renaming that the last change began, if places of the document are left."""
        if (repeatable := self._documents.get(snapshot.uri)) is None:
            return None
        replacement = repeatable.replacement(snapshot)
        found = repeatable.renaming(replacement, snapshot) if replacement is not None else None
        return found if found is not None and found.left else None

    def rename_all(
        self, snapshot: Snapshot, path: str, others: Sequence[tuple[Snapshot, str]]
    ) -> list[RenamedDocument]:
        """The last renaming made everywhere: in its document, and in `others` (with their paths) that import the name.

        Empty if there is none, or if it would break the syntax of a document.
        """
        if (renaming := self.remaining(snapshot)) is None:
            return []
        found = [renamed(snapshot, renaming.left)]
        if self._documents[snapshot.uri].is_global():
            for other, other_path in others:
                if sites := sites_elsewhere(renaming, path, snapshot.language_id, other, other_path):
                    found.append(renamed(other, sites))
        made = [each for each in found if each is not None and each.sites]
        return made if len(made) == len(found) else []

    async def find(
        self,
        snapshot: Snapshot,
        path: str,
        feature: Feature,
        cursor: int | None,
        surroundings: Callable[[], Surroundings] | None = None,
    ) -> list[Suggestion]:
        """The next edit, if there is one; the model sees `path` in a comment.

        `cursor` is the cursor's offset if the editor asks on its own, None if the user does. Where the rules offer
        nothing, and a model rewrites regions, the `surroundings` say which. Raises Cancelled when a newer request
        supersedes this one, and whatever the engine raises.
        """
        invoked = cursor is None
        search = self._search(snapshot, invoked, path)
        if search is not None and search.sites:
            if cursor is not None and search.repeatable.is_unfinished(search.replacement, cursor):
                return []
            most = len(search.sites) if invoked else SITES_JUDGED_UNASKED
            request = SuggestionRequest(feature, snapshot, search.replacement.start, invoked, is_next_edit=True)
            if found := await self._answer(request, partial(self._first, search, most), search.cancel):
                return found
        if self.rewritten_places.rewrite is None or surroundings is None:
            return []
        around, cancel = surroundings(), Event()
        places = self.rewritten_places.open(snapshot, around.places, invoked)
        if not places:
            return []
        at = snapshot.offset_at(places[0].line, 0)
        request = SuggestionRequest(feature, snapshot, at, invoked, is_next_edit=True)
        return await self._answer(request, partial(self.rewritten_places.first, places, around.hunks, cancel), cancel)

    async def _answer(
        self, request: SuggestionRequest, search: Callable[[], Coroutine[Any, Any, list[Suggestion]]], cancel: Event
    ) -> list[Suggestion]:
        """What a search finds; an equal request under way shares it, and older ones are cancelled."""
        self._coalescer.cancel_where(request.supersedes)
        return await self._coalescer.answer(request, lambda: SharedAnswer.of(search(), cancel))

    def _search(self, snapshot: Snapshot, invoked: bool, path: str = "") -> _Search | None:
        repeatable = self._documents.get(snapshot.uri)
        if repeatable is None or (replacement := repeatable.replacement(snapshot)) is None:
            return None
        return _Search(repeatable, replacement, repeatable.sites(replacement, snapshot, invoked), snapshot, path)

    async def _first(self, search: _Search, most: int) -> list[Suggestion]:
        """The edit at the first site, of at most `most`, where the model finds the new text likely enough.

        A renaming under way is not judged: the name is undefined where it stops.
        """
        started, replacement = perf_counter(), search.replacement
        is_walked = search.repeatable.is_walked(replacement, search.snapshot)
        for site in search.sites if is_walked else search.sites[:most]:
            request = scoring_request(site, replacement, search.snapshot, search.path, search.cancel)
            if request is None:
                continue
            probability = 1.0 if is_walked else await self._probability(request, site)
            if probability < MIN_PROBABILITY:
                continue
            if not breaks(search.snapshot, site.start, site.end, site.new):
                renaming = search.repeatable.renaming(replacement, search.snapshot)
                span = search.snapshot, site.start, site.end
                found = Suggestion.replacing(*span, site.new, probability, perf_counter() - started)
                found = replace(found, renaming=_progress(renaming))
                search.repeatable.offer(found.id, site)
                return [found]
        return []

    async def _probability(self, request: FillRequest, site: EditSite) -> float:
        """The probability of a site's new text; 0 without an engine."""
        nats = await self._score(request, (site.old, site.new))
        return probability_of_new(*nats) if nats is not None else 0.0


def _progress(renaming: Renaming | None) -> RenamingProgress | None:
    if renaming is None or not renaming.left:
        return None
    return RenamingProgress(renaming.old, renaming.new, renaming.made + 1, renaming.total, renaming.remaining)
