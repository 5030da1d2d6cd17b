"""Infers the outcomes of suggestions from edits and from the client's reports."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic, time

from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Edit
from mercury_lsp.statistics.impression import Impression
from mercury_lsp.statistics.record import Outcome, OutcomeRecord
from mercury_lsp.statistics.span import TrackedSpan

KEPT_AFTER_SECONDS = 30.0
"""Time after which accepted text that still stands counts as kept."""

REPORT_WITHIN_SECONDS = 5.0
"""Time for the client to report an acceptance that the edits did not show."""

MAX_UNRECORDED = 16
"""Impressions of one document that wait for either; beyond that the least interesting one is recorded early."""


@dataclass(slots=True)
class ObservedRequest:
    """A request for suggestions; its span is tracked while the model works."""

    uri: str
    span: TrackedSpan
    language: str
    automatic: bool
    requested_at: float


@dataclass(slots=True)
class _DocumentState:
    """The request and the impressions of one open document."""

    request: ObservedRequest | None = None
    impression: Impression | None = None
    """The one on display."""
    unrecorded: list[Impression] = field(default_factory=list)
    """Decided, but not recorded yet."""

    def is_about(self, request: ObservedRequest) -> bool:
        """Whether the request is the newest, or at the same place as the newest, from another feature."""
        return self.request is not None and self.request.span == request.span


class Observer:
    """Receives all events in order, and passes a record of every impression to `record` once it is over.

    `waits` is called when an impression must be recorded later, by `sweep`.
    """

    def __init__(
        self,
        record: Callable[[OutcomeRecord], None],
        waits: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = monotonic,
    ):
        self.client = self.model = ""
        self._is_on = False
        self._record, self._waits, self._clock = record, waits, clock
        self._documents: dict[str, _DocumentState] = {}
        self._client_reports_shown = False
        """The client reports what it shows; anything unreported was not seen."""

    @property
    def is_waiting(self) -> bool:
        """Whether a later `sweep` has something to record."""
        return any(state.unrecorded for state in self._documents.values())

    def switch(self, on: bool) -> None:
        """Start observing; or stop, and drop everything observed."""
        self._is_on = on
        if not on:
            self._documents.clear()

    def watches(self, uri: str) -> bool:
        """Whether edits of the document matter."""
        return uri in self._documents

    def requested(self, uri: str, offset: int, language: str, automatic: bool) -> ObservedRequest | None:
        """Suggestions are requested; one on display elsewhere in the document is so no longer. None while off."""
        if not self._is_on:
            return None
        state = self._documents.setdefault(uri, _DocumentState())
        if state.impression is not None and state.impression.end != offset:
            self._resolve(state, "rejected")
        state.request = ObservedRequest(uri, TrackedSpan(offset), language, automatic, self._clock())
        return state.request

    def answered(self, request: ObservedRequest | None, suggestions: Sequence[Suggestion]) -> None:
        """A request is answered with alternatives; ignored if edits at its place mean that none of them is visible."""
        state = self._documents.get(request.uri) if request is not None else None
        if request is None or state is None or not state.is_about(request):
            return
        if state.request is request:
            state.request = None
        if not suggestions or self._shows_rest(state, request.span.end, suggestions):
            return
        impression = Impression(suggestions, request.span, self._record_of(request, suggestions[0]))
        if impression.fits():
            self._resolve(state, "ignored")
            state.impression = impression

    def retract(self, uri: str) -> None:
        """The last suggestions are not shown after all, and do not count."""
        state = self._documents.get(uri)
        if state and state.impression and not (state.impression.typed or state.impression.saved):
            state.impression = None

    def edited(self, uri: str, edits: Sequence[Edit]) -> None:
        """One notification's edits, in order."""
        if (state := self._documents.get(uri)) is None:
            return
        if (request := state.request) and not _moved(request.span, edits):
            state.request = None
        first = min((edit.start for edit in edits), default=0)
        for each in state.unrecorded:
            if first <= each.end:  # edits after it leave it as it is
                each.follow(edits)
        if (impression := state.impression) and (not impression.follow(edits) or impression.is_used_up):
            self._resolve(state, "rejected")

    def reported_shown(self, suggestion_id: str) -> None:
        """The client reports that it shows a suggestion."""
        self._client_reports_shown = True
        for _, impression in self._found(suggestion_id):
            impression.is_confirmed = True

    def reported_accepted(self, suggestion_id: str, in_part: bool = False) -> None:
        """The client reports that the user accepted a suggestion, or its start; this overrides what the edits show."""
        for state, impression in self._found(suggestion_id):
            impression.is_confirmed = True
            if in_part:
                impression.take_part()
            else:
                impression.take_whole(suggestion_id)
            if impression is not state.impression:
                impression.outcome = impression.verdict(impression.outcome or "ignored")
            elif impression.is_used_up:
                self._resolve(state, "accepted")

    def reported_rejected(self, suggestion_id: str) -> None:
        """The client reports that the user dismissed a suggestion."""
        for state, impression in self._found(suggestion_id):
            if impression is state.impression:
                self._resolve(state, "rejected")

    def closed(self, uri: str) -> None:
        """The document was closed: an undecided impression was ignored, and accepted text that stands was kept."""
        if state := self._documents.pop(uri, None):
            if state.impression is not None:
                self._decide(state.impression, "ignored")
                state.unrecorded.append(state.impression)
            for impression in state.unrecorded:
                self._finish(impression)

    def close(self) -> None:
        """Treat all documents as closed."""
        for uri in tuple(self._documents):
            self.closed(uri)

    def sweep(self) -> None:
        """Record the impressions that have waited long enough."""
        now = self._clock()
        for state in self._documents.values():
            over = [each for each in state.unrecorded if now - each.resolved_at >= _seconds_to_wait(each)]
            state.unrecorded = [each for each in state.unrecorded if each not in over]
            for impression in over:
                self._finish(impression)

    def _shows_rest(self, state: _DocumentState, offset: int, suggestions: Sequence[Suggestion]) -> bool:
        """Whether the first suggestion is the remainder of an earlier one, which is then put on display again."""
        suggestion = suggestions[0]
        for impression in (state.impression, *state.unrecorded):
            if impression is not None and suggestion.id in impression.ids:
                if impression is not state.impression:
                    self._resolve(state, "ignored")
                    state.unrecorded.remove(impression)
                    state.impression = impression
                impression.show_rest(suggestion, offset)
                impression.show_more(suggestions[1:])
                return True
        return False

    def _record_of(self, request: ObservedRequest, first: Suggestion) -> Callable[..., OutcomeRecord]:
        """Makes the record of an impression of this request."""
        latency = (self._clock() - request.requested_at) * 1000
        about = request.language, self.client, self.model, request.automatic
        return partial(OutcomeRecord, int(time()), *about, first.confidence, latency)

    def _resolve(self, state: _DocumentState, otherwise: Outcome) -> None:
        """Decide the impression on display."""
        if (impression := state.impression) is None:
            return
        state.impression = None
        self._decide(impression, otherwise)
        state.unrecorded.append(impression)
        self._waits()
        if len(state.unrecorded) > MAX_UNRECORDED:
            first = min(state.unrecorded, key=_seconds_to_wait)
            state.unrecorded.remove(first)
            self._finish(first)

    def _decide(self, impression: Impression, otherwise: Outcome) -> None:
        impression.outcome, impression.resolved_at = impression.verdict(otherwise), self._clock()

    def _finish(self, impression: Impression) -> None:
        assert impression.outcome is not None
        if self._client_reports_shown and not impression.is_confirmed and impression.outcome in ("rejected", "ignored"):
            return
        self._record(impression.record())

    def _found(self, suggestion_id: str) -> Iterator[tuple[_DocumentState, Impression]]:
        """The impression with this suggestion, and its document, if there is one."""
        for state in self._documents.values():
            for impression in (state.impression, *state.unrecorded):
                if impression is not None and suggestion_id in impression.ids:
                    yield state, impression
                    return


def _moved(span: TrackedSpan, edits: Sequence[Edit]) -> bool:
    """Move a request's span with edits; False if they change more than the text typed there."""
    holds = True
    for edit in edits:
        if (typed := span.appended(edit)) is None:
            holds &= span.follow(edit)
        else:
            span.append(typed)
    return holds


def _seconds_to_wait(impression: Impression) -> float:
    """Seconds from the decision until it is recorded."""
    return KEPT_AFTER_SECONDS if impression.saved else REPORT_WITHIN_SECONDS
