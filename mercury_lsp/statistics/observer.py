"""Infers the outcomes of suggestions from edits and from the client's reports."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic, time

from mercury_engine.text.common_prefix import common_text_ends

from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.chunked_text import with_plain_breaks
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.statistics.store import Outcome, OutcomeRecord

_PAIRS = ("()", "[]", "{}", '""', "''", "``")
"""Pairs whose second character editors insert when the user types the first."""

MAX_TYPED_CHARS = 2_000
"""Most text typed while the model works; more ends the impression."""

_CLOSING = re.compile(r"[\s)\]}>'\"`;,:]*")
"""Text that editors append on their own."""


class Impression:
    """Alternative suggestions at one place, which count as one; just a place until they are shown.

    Text counts as taken if more than one key's worth was inserted at once. Equal text from another source looks the
    same, and accepting one character looks like a key.
    """

    def __init__(self, uri: str, offset: int, language: str, automatic: bool):
        self.uri, self._about = uri, (language, automatic)
        self.outcome: Outcome | None = None
        """None while on display."""
        self.is_confirmed = False
        """The client reported that it showed a suggestion."""
        self.is_silent = False
        """A request for this place was answered with nothing."""
        self.is_hidden = False
        """The client shows only a mark until the user opens it."""
        self._start, self._text = offset, ""
        """Offset in code points, and the text inserted there since the request."""
        self._texts: dict[str, str] = {}
        """The alternatives by id, including the text typed before they were shown."""
        self._requested_at, self._shown = monotonic(), (0, 0.0, 0.0)
        self._given = self._covered = self._saved = 0
        """Characters of an alternative: present when it was shown, most present since, and inserted at once."""
        self._reached = set[Outcome]()
        """What became of it so far: accepted, partly and typed."""

    @property
    def end(self) -> int:
        """The offset after its text."""
        return self._start + len(self._text)

    @property
    def is_untouched(self) -> bool:
        """Nothing of it was typed or taken."""
        return self._covered == self._given

    def is_awaited_at(self, offset: int) -> bool:
        """Whether an answer may still show it at this place, where nothing has been typed since."""
        return self._start == offset and not self._text and not self.is_silent

    @property
    def is_used_up(self) -> bool:
        """Nothing is left to take."""
        return "accepted" in self._reached and self._covered >= max(map(len, self._texts.values()))

    def __contains__(self, suggestion_id: str) -> bool:
        return suggestion_id in self._texts

    def show(self, suggestions: Sequence[Suggestion]) -> bool:
        """Display alternatives; False if none agrees with the text typed since the request."""
        self._shown = int(time()), suggestions[0].confidence, (monotonic() - self._requested_at) * 1000
        self._texts = {each.id: with_plain_breaks(each.text) for each in suggestions}
        agreed = self._agreed(at_once=False)
        self._given = self._covered = agreed or 0
        return agreed is not None

    def show_more(self, suggestions: Sequence[Suggestion]) -> None:
        """More alternatives, which continue its text, are on display."""
        typed = with_plain_breaks(self._text)
        for each in suggestions:
            self._texts.setdefault(each.id, typed + with_plain_breaks(each.text))

    def follow(self, edits: Sequence[Edit]) -> bool:
        """Apply one notification's edits; False if they end the display."""
        at_once, agreed = False, self._text
        for edit in edits:
            before = self._text
            if not self._apply(edit):
                return False
            if self._text != before:  # keys may come together with the acceptance after them
                at_once |= not is_keystroke(with_plain_breaks(minimal(edit).inserted))
                if self._texts and (covered := self._agreed(at_once)) is not None:
                    self._gain(covered, at_once)
                    agreed = self._text
        return self._text == agreed if self._texts else len(self._text) <= MAX_TYPED_CHARS

    def take(self, suggestion_id: str) -> None:
        """The client reports the acceptance of this alternative; its edit has come, or will."""
        length = len(self._texts[suggestion_id])
        typed = self._covered - self._saved
        self._covered, self._saved = max(self._covered, length), max(self._saved, length - typed, 1)
        self._reached.add("accepted")

    def take_part(self) -> None:
        """The client reports the acceptance of a prefix, at least one character; the edits show how much."""
        self._saved = max(self._saved, min(1, self._covered - self._given))
        self._reached.add("partly")

    def decide(self, otherwise: Outcome) -> None:
        """Decide its outcome; `otherwise` if nothing was taken and it was not typed to its end."""
        best_first: tuple[Outcome, ...] = ("accepted", "partly", "typed")
        self.outcome = next((each for each in best_first if each in self._reached), otherwise)

    def record(self, client: str, model: str) -> OutcomeRecord:
        """Its record, once decided, with the length of the first alternative."""
        assert self.outcome is not None
        (language, automatic), (shown_at, confidence, latency) = self._about, self._shown
        length = len(next(iter(self._texts.values())))
        return OutcomeRecord(
            shown_at, language, client, model, automatic, confidence, latency, length, self.outcome, self._saved
        )

    def _apply(self, edit: Edit) -> bool:
        """Apply an edit; False if it changes the text directly before the impression's or crosses its edge."""
        if (added := self._appended(edit)) is not None:
            self._text += added
            return True
        edit = minimal(edit)
        first, last = edit.start, edit.start + len(edit.removed)
        if last < self._start:
            self._start += len(edit.inserted) - len(edit.removed)
        elif first < self._start:
            return False
        elif first < self.end or last == self._start:  # some clients send their changes from the bottom up
            at, is_inside = first - self._start, last <= self.end
            self._text = self._text[:at] + edit.inserted + self._text[at + len(edit.removed) :]
            return is_inside
        return True

    def _appended(self, edit: Edit) -> str | None:
        """The text that an edit, possibly with context, inserts directly after its text; None for any other edit."""
        lead = self.end - edit.start
        if not 0 <= lead <= len(edit.removed) or edit.removed[:lead] != edit.inserted[:lead]:
            return None
        tail, rest = edit.removed[lead:], edit.inserted[lead:]
        return rest[: len(rest) - len(tail)] if rest.endswith(tail) else None

    def _agreed(self, at_once: bool) -> int | None:
        """Number of characters of an alternative present there; None if other text is."""
        now = with_plain_breaks(self._text)
        if any(text.startswith(now) for text in self._texts.values()):
            return len(now)
        whole = (text for text in self._texts.values() if at_once and is_whole(now, text))
        return max(map(len, whole), default=None)

    def _gain(self, covered: int, at_once: bool) -> None:
        if covered <= self._covered:
            return
        if at_once:
            self._saved += covered - self._covered
            self._reached.add("partly")
        self._covered = covered
        if covered in map(len, self._texts.values()):
            self._reached.add("accepted" if at_once else "typed")


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
        self.is_on = False
        self._record = record
        self._documents: dict[str, _DocumentState] = {}
        self._client_reports_shown = False
        """The client reports what it shows, so anything unreported was not seen."""

    def switch(self, on: bool) -> None:
        """Start observing; or stop, and drop everything observed."""
        self.is_on = on
        if not on:
            self._documents.clear()

    def requested(self, uri: str, offset: int, language: str, automatic: bool) -> Impression:
        """Suggestions are requested, which ends the display of earlier ones in the document."""
        if not self.is_on:
            return Impression(uri, offset, language, automatic)
        state = self._documents.setdefault(uri, _DocumentState())
        if state.shown is not None and state.shown.end != offset:
            self._resolve(state, "rejected")
        if state.requested is None or not state.requested.is_awaited_at(offset):  # else two features ask at one place
            state.requested = Impression(uri, offset, language, automatic)
        return state.requested

    def answered(self, request: Impression, suggestions: Sequence[Suggestion]) -> None:
        """A request is answered with alternatives; ignored if later edits hide all of them."""
        if (state := self._documents.get(request.uri)) is None:
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


def edit_between(before: Snapshot, after: Snapshot) -> Edit:
    """The single edit from one version to the next, for changes sent as a whole text."""
    return minimal(Edit(0, before.text, after.text))


def minimal(edit: Edit) -> Edit:
    """The same edit without the common prefix and suffix of its texts."""
    lead, trail = common_text_ends(edit.removed, edit.inserted)
    ends = len(edit.removed) - trail, len(edit.inserted) - trail
    return Edit(edit.start + lead, edit.removed[lead : ends[0]], edit.inserted[lead : ends[1]])


def is_keystroke(inserted: str) -> bool:
    """Whether one key may have inserted this: a character, a bracket pair, a tab, an indented line break."""
    return len(inserted) <= 1 or inserted.isspace() or inserted in _PAIRS


def is_whole(inserted: str, suggested: str) -> bool:
    """Whether the inserted text is the suggested one, apart from white space and closers appended by the editor."""
    actual, wanted = "".join(inserted.split()), "".join(suggested.split())
    return bool(wanted) and actual.startswith(wanted) and _CLOSING.fullmatch(actual, len(wanted)) is not None
