"""One suggestion on display, and what the user makes of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Edit
from mercury_lsp.statistics.matching import is_keystroke, is_whole, share_left, with_plain_breaks
from mercury_lsp.statistics.record import Outcome
from mercury_lsp.statistics.span import TrackedSpan, minimal


@dataclass(frozen=True, slots=True)
class RequestDetails:
    """Of a showing, as a record has them."""

    shown_at: int
    language: str
    client: str
    model: str
    automatic: bool
    confidence: float
    latency_ms: float


class Impression:
    """Suggestions to choose from at one place; they count as one.

    Taken is what came in by more than one key at once. Text that another source inserts, and that agrees with the
    suggestion, cannot be told from that; a suggestion of one character cannot be told from a key.
    """

    def __init__(self, suggestions: Sequence[Suggestion], place: TrackedSpan, details: RequestDetails):
        self.details = details
        self.outcome: Outcome | None = None
        """None while it is on display."""
        self.resolved_at = 0.0
        self.typed = self.saved = 0
        self.is_confirmed = False
        """The client told that it was shown."""
        self._span = TrackedSpan(place.start, place.text)
        self._texts = {each.id: with_plain_breaks(each.text) for each in suggestions}
        self._given = self._covered = len(with_plain_breaks(place.text))
        """Characters of the text that stood at its place before it was shown; the most that stood there so far."""
        self._match = max(self._texts.values(), key=len)
        """Which of the texts the user goes along."""
        self._last_typed = 0
        """Of the latest gain, if it was made by a key."""
        self._was_taken_whole = self._was_typed_whole = self._was_told_in_part = False
        self._awaits_text = False
        """The client told of an acceptance whose edit has not come yet."""

    @property
    def ids(self) -> Sequence[str]:
        """Of the suggestions to choose from."""
        return tuple(self._texts)

    @property
    def length(self) -> int:
        """Characters of the first suggestion."""
        return len(next(iter(self._texts.values())))

    @property
    def end(self) -> int:
        """Offset behind what stands at its place."""
        return self._span.end

    @property
    def is_used_up(self) -> bool:
        """Nothing of it is left to take."""
        return self._was_taken_whole and self._covered >= max(map(len, self._texts.values()))

    @property
    def kept(self) -> int:
        """Of the saved characters, those that still stand."""
        if not self.saved:
            return 0
        now = with_plain_breaks(self._span.text)
        return round(self.saved * share_left(self._match[: self._covered], now))

    def fits(self) -> bool:
        """Whether what stands at its place agrees with it."""
        return self._agreed(at_once=False) is not None

    def follow(self, edits: Sequence[Edit]) -> bool:
        """Take in one notification's edits; False when they decide against what is on display."""
        if self.outcome is not None:
            for edit in edits:
                self._apply(edit)
            return True
        holds, at_once, agreed = True, False, self._span.text
        for edit in edits:
            before = self._span.text
            holds &= self._apply(edit)
            if self._span.text != before:
                # Keys before an acceptance may come with it; what comes behind it belongs to it.
                at_once |= not is_keystroke(with_plain_breaks(minimal(edit).inserted))
            if (covered := self._agreed(at_once)) is not None:
                self._gain(covered, at_once)
                agreed = self._span.text
        if self._span.text == agreed:
            return holds
        if self.saved and self._span.text.startswith(agreed):
            self._span.text = agreed  # what the user typed behind the accepted text does not belong to it
        return False

    def take_whole(self, suggestion_id: str) -> None:
        """The client says that the user took this one; its edit has come, or will."""
        self._match = self._texts[suggestion_id]
        length = len(self._match)
        self._awaits_text = self.outcome is None and self._covered < length
        if self._covered >= length:
            self._take_back_key()
        self.saved = max(self.saved, length - self._given - self.typed)
        self._covered = max(self._covered, length)
        self._was_taken_whole = True

    def take_part(self) -> None:
        """The client says that the user took a beginning; the edits tell how much. It may have been one character."""
        self._take_back_key()
        self._was_told_in_part = True

    def show_rest(self, rest: Suggestion, offset: int) -> None:
        """What is left of one of its suggestions is on display, for the cursor at offset."""
        self.outcome = None
        if self.fits() and self.end == offset:
            return
        there = self._texts[rest.id].removesuffix(with_plain_breaks(rest.text))
        self._span = TrackedSpan(offset - len(there), there)

    def show_more(self, others: Sequence[Suggestion]) -> None:
        """There is more to choose from, that goes on from what stands at its place."""
        there = with_plain_breaks(self._span.text)
        for each in others:
            self._texts.setdefault(each.id, there + with_plain_breaks(each.text))

    def verdict(self, otherwise: Outcome) -> Outcome:
        """What became of it; `otherwise` if nothing of it was taken or typed to its end."""
        if self._was_taken_whole:
            return "accepted"
        if self.saved or self._was_told_in_part:
            return "partly"
        return "typed" if self._was_typed_whole else otherwise

    def _apply(self, edit: Edit) -> bool:
        """False if the edit changes what stands before it, too."""
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
        """Whether text behind the span belongs to it: always while on display, later if it goes on from there."""
        if self.outcome is None or self._awaits_text:
            self._awaits_text = False
            return True
        grown = with_plain_breaks(self._span.text + inserted)
        return any(text.startswith(grown) for text in self._texts.values())

    def _agreed(self, at_once: bool) -> int | None:
        """Characters of a suggestion that the span spells; None if it spells something else."""
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

    def _gain(self, covered: int, at_once: bool) -> None:
        gain = covered - self._covered
        if gain <= 0:
            return
        self._covered = covered
        self._last_typed = 0 if at_once else gain
        self.saved += gain if at_once else 0
        self.typed += 0 if at_once else gain
        if covered == len(self._match) or with_plain_breaks(self._span.text) in self._texts.values():
            self._was_taken_whole |= at_once
            self._was_typed_whole |= not at_once

    def _take_back_key(self) -> None:
        """The latest key was none, but an acceptance."""
        self.typed -= self._last_typed
        self.saved += self._last_typed
        self._last_typed = 0
