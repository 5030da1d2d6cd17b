"""An impression: suggestions on display at one place, and what the user does with them."""

from collections.abc import Sequence
from dataclasses import dataclass

from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Edit
from mercury_lsp.statistics.matching import is_keystroke, is_whole, share_left, with_plain_breaks
from mercury_lsp.statistics.record import Outcome
from mercury_lsp.statistics.span import TrackedSpan, minimal


@dataclass(frozen=True, slots=True)
class RequestDetails:
    """The details of the request that a record contains."""

    shown_at: int
    language: str
    client: str
    model: str
    automatic: bool
    confidence: float
    latency_ms: float


class Impression:
    """Alternative suggestions at one place; they count as one.

    Text counts as taken if more than one key's worth was inserted at once. Text from another source that agrees with
    the suggestion looks the same, and accepting a suggestion of one character looks like a key.
    """

    def __init__(self, suggestions: Sequence[Suggestion], span: TrackedSpan, details: RequestDetails):
        self.details = details
        self.outcome: Outcome | None = None
        """None while on display."""
        self.resolved_at = 0.0
        self.typed = self.saved = 0
        self.is_confirmed = False
        """The client reported that it showed a suggestion."""
        self._span = TrackedSpan(span.start, span.text)
        self._texts = {each.id: with_plain_breaks(each.text) for each in suggestions}
        self._given_chars = self._covered_chars = len(with_plain_breaks(span.text))
        """Characters of it that stood in the document before it was shown; the most that have stood there since."""
        self._match = max(self._texts.values(), key=len)
        """The alternative that the user follows."""
        self._last_typed = 0
        """Characters gained by the latest key; 0 if the latest gain was no key."""
        self._was_taken_whole = self._was_typed_whole = self._was_reported_in_part = False
        self._awaits_text = False
        """The client reported an acceptance whose edit has not come yet."""

    @property
    def ids(self) -> Sequence[str]:
        """The ids of the alternatives."""
        return tuple(self._texts)

    @property
    def length(self) -> int:
        """Length of the first alternative, in characters."""
        return len(next(iter(self._texts.values())))

    @property
    def end(self) -> int:
        """The offset after its span."""
        return self._span.end

    @property
    def is_used_up(self) -> bool:
        """Nothing is left to take."""
        return self._was_taken_whole and self._covered_chars >= max(map(len, self._texts.values()))

    @property
    def kept(self) -> int:
        """Saved characters that still stand."""
        if not self.saved:
            return 0
        now = with_plain_breaks(self._span.text)
        return round(self.saved * share_left(self._match[: self._covered_chars], now))

    def fits(self) -> bool:
        """Whether the text of its span agrees with it."""
        return self._agreed(at_once=False) is not None

    def follow(self, edits: Sequence[Edit]) -> bool:
        """Follow one notification's edits; False if they reject what is on display."""
        if self.outcome is not None:
            for edit in edits:
                self._apply(edit)
            return True
        holds, at_once, agreed = True, False, self._span.text
        for edit in edits:
            before = self._span.text
            holds &= self._apply(edit)
            if self._span.text != before:
                # Keys may come together with the acceptance after them; edits after it belong to it.
                at_once |= not is_keystroke(with_plain_breaks(minimal(edit).inserted))
            if (covered_chars := self._agreed(at_once)) is not None:
                self._gain(covered_chars, at_once)
                agreed = self._span.text
        if self._span.text == agreed:
            return holds
        if self.saved and self._span.text.startswith(agreed):
            self._span.text = agreed  # text typed after the accepted text does not belong to it
        return False

    def take_whole(self, suggestion_id: str) -> None:
        """The client reports that the user accepted this alternative; its edit has come, or will."""
        self._match = self._texts[suggestion_id]
        length = len(self._match)
        self._awaits_text = self.outcome is None and self._covered_chars < length
        if self._covered_chars >= length:
            self._take_back_key()
        self.saved = max(self.saved, length - self._given_chars - self.typed)
        self._covered_chars = max(self._covered_chars, length)
        self._was_taken_whole = True

    def take_part(self) -> None:
        """The client reports that the user accepted a prefix; the edits show how much. It may be one character."""
        self._take_back_key()
        self._was_reported_in_part = True

    def show_rest(self, rest: Suggestion, offset: int) -> None:
        """The remainder of one of its alternatives is on display, with the cursor at offset."""
        self.outcome = None
        if self.fits() and self.end == offset:
            return
        typed = self._texts[rest.id].removesuffix(with_plain_breaks(rest.text))
        self._span = TrackedSpan(offset - len(typed), typed)

    def show_more(self, others: Sequence[Suggestion]) -> None:
        """More alternatives are on display, which continue the text of its span."""
        typed = with_plain_breaks(self._span.text)
        for each in others:
            self._texts.setdefault(each.id, typed + with_plain_breaks(each.text))

    def verdict(self, otherwise: Outcome) -> Outcome:
        """The outcome; `otherwise` if nothing was taken and it was not typed to its end."""
        if self._was_taken_whole:
            return "accepted"
        if self.saved or self._was_reported_in_part:
            return "partly"
        return "typed" if self._was_typed_whole else otherwise

    def _apply(self, edit: Edit) -> bool:
        """Apply an edit to the span; False if it also changes the text before it."""
        inserted = self._span.appended(edit)
        if inserted is not None:
            if self._takes_in(inserted):
                self._span.append(inserted)
        elif self.outcome is None and edit.start == self._span.start and not edit.removed:
            self._span.prepend(edit.inserted)  # some clients send their changes from the bottom up
        else:
            return self._span.follow(edit)
        return True

    def _takes_in(self, inserted: str) -> bool:
        """Whether text after the span belongs to it: always while on display, later if it continues an alternative."""
        if self.outcome is None or self._awaits_text:
            self._awaits_text = False
            return True
        grown = with_plain_breaks(self._span.text + inserted)
        return any(text.startswith(grown) for text in self._texts.values())

    def _agreed(self, at_once: bool) -> int | None:
        """How many characters of an alternative stand in the span; None if the span has other text."""
        now = with_plain_breaks(self._span.text)
        for text in self._texts.values():
            if text.startswith(now):
                self._match = text
                return len(now)
        for text in self._texts.values():
            if at_once and is_whole(now, text):
                self._match = text
                return len(text)
        return None

    def _gain(self, covered_chars: int, at_once: bool) -> None:
        gain = covered_chars - self._covered_chars
        if gain <= 0:
            return
        self._covered_chars = covered_chars
        self._last_typed = 0 if at_once else gain
        self.saved += gain if at_once else 0
        self.typed += 0 if at_once else gain
        if covered_chars == len(self._match) or with_plain_breaks(self._span.text) in self._texts.values():
            self._was_taken_whole |= at_once
            self._was_typed_whole |= not at_once

    def _take_back_key(self) -> None:
        """Count the latest key as an acceptance."""
        self.typed -= self._last_typed
        self.saved += self._last_typed
        self._last_typed = 0
