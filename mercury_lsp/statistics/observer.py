"""Infers the outcomes of suggestions from edits and from the client's reports."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Edit
from mercury_lsp.statistics.impression import Impression
from mercury_lsp.statistics.store import Outcome, OutcomeRecord


@dataclass(slots=True)
class _DocumentState:
    """The impressions of one open document."""

    requested: Impression | None = None
    """The impression that an answer will put on display."""
    shown: Impression | None = None
    decided: Impression | None = None
    """The last one shown; recorded when the next one is decided, because the client may still report on it."""


class Observer:
    """Receives all events in order and passes the record of each finished impression to `record`."""

    def __init__(self, record: Callable[[OutcomeRecord], None]):
        self.client = self.model = ""
        self._is_on = False
        self._record = record
        self._documents: dict[str, _DocumentState] = {}
        self._client_reports_shown = False
        """The client reports what it shows, so anything unreported was not seen."""

    def switch(self, on: bool) -> None:
        """Start observing; or stop, and drop everything observed."""
        self._is_on = on
        if not on:
            self._documents.clear()

    def requested(self, uri: str, offset: int, language: str, automatic: bool) -> Impression | None:
        """Suggestions are requested, which ends the display of earlier ones in the document. None while off."""
        if not self._is_on:
            return None
        state = self._documents.setdefault(uri, _DocumentState())
        if state.shown is not None and state.shown.end != offset:
            self._resolve(state, "rejected")
        waiting = state.requested  # two features may ask at one place
        if waiting is None or waiting.is_silent or not waiting.is_at(offset):
            state.requested = Impression(uri, offset, language, automatic)
        return state.requested

    def answered(self, request: Impression | None, suggestions: Sequence[Suggestion]) -> None:
        """A request is answered with alternatives; ignored if later edits hide all of them."""
        state = self._documents.get(request.uri) if request is not None else None
        if request is None or state is None:
            return
        if not suggestions:
            request.is_silent = True
            return
        if state.shown is not None and (request is state.shown or suggestions[0].id in state.shown):
            state.shown.show_more(suggestions)
        elif request is state.requested:
            state.requested = None
            if request.show(suggestions):
                self._resolve(state, "ignored")
                state.shown = request

    def retract(self, uri: str) -> None:
        """The last suggestions are not shown after all, and do not count."""
        state = self._documents.get(uri)
        if state and state.shown and state.shown.is_untouched:
            state.shown = None

    def edited(self, uri: str, edits: Sequence[Edit]) -> None:
        """One notification's edits, in order."""
        if (state := self._documents.get(uri)) is None:
            return
        if state.requested is not None and not state.requested.follow(edits):
            state.requested = None
        if state.shown is not None and (not state.shown.follow(edits) or state.shown.is_used_up):
            self._resolve(state, "rejected")

    def reported_shown(self, suggestion_id: str) -> None:
        """The client shows a suggestion. It always reports what it shows without a mark first."""
        found = [impression for _, impression in self._found(suggestion_id)]
        self._client_reports_shown |= not any(each.is_hidden for each in found)
        for impression in found:
            impression.is_confirmed = True

    def reported_accepted(self, suggestion_id: str, in_part: bool = False) -> None:
        """The client reports that the user accepted a suggestion or its start; this overrides the edits."""
        for state, impression in self._found(suggestion_id):
            impression.is_confirmed = True
            if in_part:
                impression.take_part()
            else:
                impression.take(suggestion_id)
            if impression.outcome is not None:
                impression.decide(impression.outcome)
            elif impression.is_used_up:
                self._resolve(state, "accepted")

    def reported_rejected(self, suggestion_id: str) -> None:
        """The client reports that the user dismissed a suggestion."""
        for state, impression in self._found(suggestion_id):
            if impression is state.shown:
                self._resolve(state, "rejected")

    def closed(self, uri: str) -> None:
        """The document was closed: an undecided impression was ignored."""
        if state := self._documents.pop(uri, None):
            self._resolve(state, "ignored")
            self._finish(state.decided)

    def close(self) -> None:
        """Treat all documents as closed."""
        for uri in tuple(self._documents):
            self.closed(uri)

    def _resolve(self, state: _DocumentState, otherwise: Outcome) -> None:
        """Decide the impression on display."""
        if (impression := state.shown) is None:
            return
        impression.decide(otherwise)
        self._finish(state.decided)
        state.shown, state.decided = None, impression

    def _finish(self, impression: Impression | None) -> None:
        if impression is None:
            return
        was_seen = impression.is_confirmed or impression.outcome not in ("rejected", "ignored")
        if was_seen or not (self._client_reports_shown or impression.is_hidden):
            self._record(impression.record(self.client, self.model))

    def _found(self, suggestion_id: str) -> Iterator[tuple[_DocumentState, Impression]]:
        """The impression with this suggestion, and its document, if there is one."""
        for state in self._documents.values():
            for impression in (state.shown, state.decided):
                if impression is not None and suggestion_id in impression:
                    yield state, impression
                    return
