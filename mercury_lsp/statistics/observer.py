"""Infers from edits, and from what the client tells, what becomes of suggestions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic, time

from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Edit
from mercury_lsp.statistics.impression import Impression, RequestDetails
from mercury_lsp.statistics.record import Outcome, Record
from mercury_lsp.statistics.span import TrackedSpan

KEPT_AFTER_SECONDS = 30.0
"""Seconds after which accepted text that still stands counts as kept."""

REPORT_WITHIN_SECONDS = 5.0
"""Seconds that a client has for telling of an acceptance that the edits did not show."""

MAX_UNRECORDED = 16
"""Showings of one document that wait for either; beyond that the least interesting is recorded early."""


@dataclass(slots=True)
class ObservedRequest:
    """A suggestion was asked for; the place is followed while the model works."""

    uri: str
    place: TrackedSpan
    language: str
    automatic: bool
    asked_at: float


@dataclass(slots=True)
class _Watched:
    """Of one open document."""

    request: ObservedRequest | None = None
    showing: Impression | None = None
    """On display."""
    held: list[Impression] = field(default_factory=list)
    """Decided, and not recorded yet."""

    def is_about(self, request: ObservedRequest) -> bool:
        """Whether it is the newest request, or one that another feature has asked again at the same place."""
        return self.request is not None and self.request.place == request.place


class Observer:
    """Told of everything in the order of its happening; gives every showing to `record` once it is over.

    `waits` is called when something has to be recorded later, by `sweep`.
    """

    def __init__(
        self,
        record: Callable[[Record], None],
        waits: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = monotonic,
    ):
        self.client = self.model = ""
        self._is_on = False
        self._record, self._waits, self._clock = record, waits, clock
        self._documents: dict[str, _Watched] = {}
        self._tells_showing = False
        """The client tells what it shows; what it did not tell of was not seen."""

    @property
    def is_waiting(self) -> bool:
        """Something is to be recorded by a later `sweep`."""
        return any(watched.held for watched in self._documents.values())

    def switch(self, on: bool) -> None:
        """Begin to observe; or stop, and record nothing of what was observed."""
        self._is_on = on
        if not on:
            self._documents.clear()

    def watches(self, uri: str) -> bool:
        """Whether edits of the document matter."""
        return uri in self._documents

    def requested(self, uri: str, offset: int, language: str, automatic: bool) -> ObservedRequest | None:
        """A suggestion is asked for; one that is on display elsewhere in the document is so no more. None while off."""
        if not self._is_on:
            return None
        watched = self._documents.setdefault(uri, _Watched())
        if watched.showing is not None and watched.showing.end != offset:
            self._resolve(watched, "rejected")
        watched.request = ObservedRequest(uri, TrackedSpan(offset), language, automatic, self._clock())
        return watched.request

    def answered(self, request: ObservedRequest | None, suggestions: Sequence[Suggestion]) -> None:
        """The request's answer, to choose from; unless its place has changed so that nothing is to be seen of it."""
        watched = self._documents.get(request.uri) if request is not None else None
        if request is None or watched is None or not watched.is_about(request):
            return
        if watched.request is request:
            watched.request = None
        if not suggestions or self._shows_rest(watched, request.place.end, suggestions):
            return
        showing = Impression(suggestions, request.place, self._details(request, suggestions[0]))
        if showing.fits():
            self._resolve(watched, "ignored")
            watched.showing = showing

    def retract(self, uri: str) -> None:
        """What was to be shown last is not, and does not count."""
        watched = self._documents.get(uri)
        if watched and watched.showing and not (watched.showing.typed or watched.showing.saved):
            watched.showing = None

    def edited(self, uri: str, edits: Sequence[Edit]) -> None:
        """One notification's edits, in order."""
        if (watched := self._documents.get(uri)) is None:
            return
        if (request := watched.request) and not _moved(request.place, edits):
            watched.request = None
        first = min((edit.start for edit in edits), default=0)
        for held in watched.held:
            if first <= held.end:  # what the user has gone on from stays as it is
                held.follow(edits)
        if (showing := watched.showing) and (not showing.follow(edits) or showing.is_used_up):
            self._resolve(watched, "rejected")

    def reported_shown(self, suggestion_id: str) -> None:
        """The client says that it shows the suggestion."""
        self._tells_showing = True
        for _, showing in self._found(suggestion_id):
            showing.is_confirmed = True

    def reported_accepted(self, suggestion_id: str, in_part: bool = False) -> None:
        """The client says that the user took the suggestion, or its beginning; this wins over what edits say."""
        for watched, showing in self._found(suggestion_id):
            showing.is_confirmed = True
            if in_part:
                showing.take_part()
            else:
                showing.take_whole(suggestion_id)
            if showing is not watched.showing:
                showing.outcome = showing.verdict(showing.outcome or "ignored")
            elif showing.is_used_up:
                self._resolve(watched, "accepted")

    def reported_rejected(self, suggestion_id: str) -> None:
        """The client says that the user dismissed the suggestion."""
        for watched, showing in self._found(suggestion_id):
            if showing is watched.showing:
                self._resolve(watched, "rejected")

    def closed(self, uri: str) -> None:
        """The document is closed: what is undecided was ignored, and what stands was kept."""
        if watched := self._documents.pop(uri, None):
            if watched.showing is not None:
                self._decide(watched.showing, "ignored")
                watched.held.append(watched.showing)
            for showing in watched.held:
                self._finish(showing)

    def close(self) -> None:
        """All documents are closed."""
        for uri in tuple(self._documents):
            self.closed(uri)

    def sweep(self) -> None:
        """Record what has waited long enough."""
        now = self._clock()
        for watched in self._documents.values():
            over = [each for each in watched.held if now - each.resolved_at >= _patience(each)]
            watched.held = [each for each in watched.held if each not in over]
            for showing in over:
                self._finish(showing)

    def _shows_rest(self, watched: _Watched, offset: int, suggestions: Sequence[Suggestion]) -> bool:
        """Whether the first suggestion is the rest of one that was shown before, and is on display now."""
        suggestion = suggestions[0]
        for showing in (watched.showing, *watched.held):
            if showing is not None and suggestion.id in showing.ids:
                if showing is not watched.showing:
                    self._resolve(watched, "ignored")
                    watched.held.remove(showing)
                    watched.showing = showing
                showing.show_rest(suggestion, offset)
                showing.show_more(suggestions[1:])
                return True
        return False

    def _details(self, request: ObservedRequest, first: Suggestion) -> RequestDetails:
        latency = (self._clock() - request.asked_at) * 1000
        return RequestDetails(
            int(time()), request.language, self.client, self.model, request.automatic, first.confidence, latency
        )

    def _resolve(self, watched: _Watched, otherwise: Outcome) -> None:
        """What was on display is decided."""
        if (showing := watched.showing) is None:
            return
        watched.showing = None
        self._decide(showing, otherwise)
        watched.held.append(showing)
        self._waits()
        if len(watched.held) > MAX_UNRECORDED:
            first = min(watched.held, key=_patience)
            watched.held.remove(first)
            self._finish(first)

    def _decide(self, showing: Impression, otherwise: Outcome) -> None:
        showing.outcome, showing.resolved_at = showing.verdict(otherwise), self._clock()

    def _finish(self, showing: Impression) -> None:
        assert showing.outcome is not None
        if self._tells_showing and not showing.is_confirmed and showing.outcome in ("rejected", "ignored"):
            return
        about = showing.details
        self._record(
            Record(
                about.shown_at,
                about.language,
                about.client,
                about.model,
                about.automatic,
                about.confidence,
                about.latency_ms,
                showing.length,
                showing.outcome,
                showing.typed,
                showing.saved,
                showing.kept,
            )
        )

    def _found(self, suggestion_id: str) -> Iterator[tuple[_Watched, Impression]]:
        """The showing with this suggestion, if there is one."""
        for watched in self._documents.values():
            for showing in (watched.showing, *watched.held):
                if showing is not None and suggestion_id in showing.ids:
                    yield watched, showing
                    return


def _moved(place: TrackedSpan, edits: Sequence[Edit]) -> bool:
    """Follow the place of a request; False if the edits change more than what is typed there."""
    holds = True
    for edit in edits:
        if (typed := place.appended(edit)) is None:
            holds &= place.follow(edit)
        else:
            place.append(typed)
    return holds


def _patience(showing: Impression) -> float:
    """Seconds from the decision until it is recorded."""
    return KEPT_AFTER_SECONDS if showing.saved else REPORT_WITHIN_SECONDS
