"""The last change, offered for the next place where the model finds the new text likely enough."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from threading import Event
from time import perf_counter
from uuid import uuid4

from mercury_engine.api import FillRequest

from mercury_lsp.completion.coalescing import Coalescer, Feature, SharedAnswer, SuggestionRequest
from mercury_lsp.completion.next_edits.judging import MIN_PROBABILITY, chance, question
from mercury_lsp.completion.next_edits.places import EditSite
from mercury_lsp.completion.next_edits.repeating import RepeatableEdits
from mercury_lsp.completion.next_edits.replacement import Replacement
from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.documents.syntax import breaks

SITES_JUDGED_UNASKED = 4
"""Places that the model is asked about when the editor asks by itself, 0.15 s each where caches are warm."""

ScoreTexts = Callable[[FillRequest, Sequence[str]], Awaitable[list[float] | None]]


@dataclass(frozen=True, slots=True)
class _Search:
    """What is looked for, and in which text."""

    repeating: RepeatableEdits
    replacement: Replacement
    places: Sequence[EditSite]
    snapshot: Snapshot
    path: str
    cancel: Event = field(default_factory=Event)


class NextEdits:
    """In all open documents of one connection; to be used from the event loop's thread."""

    def __init__(self, questions: Coalescer, score: ScoreTexts):
        self._questions, self._score = questions, score
        self._documents: dict[str, RepeatableEdits] = {}

    def edited(self, uri: str, edits: Sequence[Edit]) -> None:
        """Tell of edits in order."""
        self._documents.setdefault(uri, RepeatableEdits()).record(edits)

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._documents.pop(uri, None)

    def dismissed(self, suggestion_id: str) -> None:
        """Tell that the user does not want an edit."""
        for repeating in self._documents.values():
            repeating.dismiss(suggestion_id)

    def has_candidates(self, snapshot: Snapshot) -> bool:
        """Whether there is a place to ask the model about if the user asks."""
        return bool((search := self._search(snapshot, invoked=True)) and search.places)

    async def find(self, snapshot: Snapshot, path: str, feature: Feature, cursor: int | None) -> list[Suggestion]:
        """The next edit, if there is one; `path` is told to the model.

        `cursor` is where it stands when the editor asks by itself, None when the user does. Raises Cancelled when a
        newer request takes its place, and whatever the engine raises.
        """
        invoked = cursor is None
        search = self._search(snapshot, invoked, path)
        if search is None or not search.places:
            return []
        if cursor is not None and search.repeating.is_unfinished(search.replacement, cursor):
            return []
        asked = SuggestionRequest(feature, snapshot, search.replacement.start, invoked, is_away=True)
        self._questions.supersede(asked.supersedes)
        most = len(search.places) if invoked else SITES_JUDGED_UNASKED

        def begin() -> SharedAnswer:
            return SharedAnswer.of(self._first(search, most), search.cancel)

        return await self._questions.ask(asked, begin)

    def _search(self, snapshot: Snapshot, invoked: bool, path: str = "") -> _Search | None:
        repeating = self._documents.get(snapshot.uri)
        if repeating is None or (replacement := repeating.replacement(snapshot)) is None:
            return None
        return _Search(repeating, replacement, repeating.places(replacement, snapshot, invoked), snapshot, path)

    async def _first(self, search: _Search, most: int) -> list[Suggestion]:
        """The edit at the first of so many places for which the model is sure enough."""
        started, replacement = perf_counter(), search.replacement
        for place in search.places[:most]:
            request = question(place, replacement, search.snapshot, search.path, search.cancel)
            if request is None:
                continue
            nats = await self._score(request, (place.old, place.new))
            if nats is None or (sure := chance(*nats)) < MIN_PROBABILITY:
                continue
            if not breaks(search.snapshot, place.start, place.end, place.new):
                found = _edit(place, search.snapshot, sure, perf_counter() - started)
                search.repeating.offer(found.id, place)
                return [found]
        return []


def _edit(place: EditSite, snapshot: Snapshot, confidence: float, seconds: float) -> Suggestion:
    return Suggestion(
        id=uuid4().hex,
        text=place.new,
        start=snapshot.position_at(place.start),
        end=snapshot.position_at(place.end),
        confidence=confidence,
        steps=0,
        elapsed_ms=seconds * 1000,
    )
