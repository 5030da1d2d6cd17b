"""An impression: suggestions on display at one place, and what the user does with them."""

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Edit
from mercury_lsp.statistics.record import Outcome, OutcomeRecord
from mercury_lsp.statistics.span import TrackedSpan, minimal

_PIECE = re.compile(r"\w+|[^\w\s]")

_PAIRS = ("()", "[]", "{}", '""', "''", "``")
"""Editors insert the second character when the user types the first."""

_CLOSING = re.compile(r"[\s)\]}>'\"`;,:]*")
"""What editors add after a text on their own."""


class Impression:
    """Alternative suggestions at one place; they count as one.

    Text counts as taken if more than one key's worth was inserted at once. Text from another source that agrees with
    the suggestion looks the same, and accepting a suggestion of one character looks like a key.
    """

    def __init__(self, suggestions: Sequence[Suggestion], span: TrackedSpan, record: Callable[..., OutcomeRecord]):
        """`record` makes its record, from the fields that follow those of its request."""
        self._record = record
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
    def end(self) -> int:
        """The offset after its span."""
        return self._span.end

    @property
    def is_used_up(self) -> bool:
        """Nothing is left to take."""
        return self._was_taken_whole and self._covered_chars >= max(map(len, self._texts.values()))

    def record(self) -> OutcomeRecord:
        """Its record, once it is decided; with the length of the first alternative."""
        kept = share_left(self._match[: self._covered_chars], with_plain_breaks(self._span.text)) if self.saved else 0.0
        length = len(next(iter(self._texts.values())))
        return self._record(length, self.outcome, self.typed, self.saved, round(self.saved * kept))

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


def with_plain_breaks(text: str) -> str:
    """The text with LF line breaks: some clients insert the document's own kind."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_keystroke(inserted: str) -> bool:
    """Whether one key may have inserted this: a character, a bracket pair, a tab, a line break with indentation."""
    return len(inserted) <= 1 or inserted.isspace() or inserted in _PAIRS


def is_whole(inserted: str, suggested: str) -> bool:
    """Whether the inserted text is the suggested one, except for white space and what an editor closes after it."""
    actual, wanted = "".join(inserted.split()), "".join(suggested.split())
    return bool(wanted) and actual.startswith(wanted) and _CLOSING.fullmatch(actual, len(wanted)) is not None


def share_left(accepted: str, now: str) -> float:
    """The share, from 0 to 1, of an accepted text's words and marks that still stand; layout does not count."""
    if accepted == now:
        return 1.0
    before, after = _PIECE.findall(accepted), _PIECE.findall(now)
    if not before:  # nothing but white space
        return float(accepted in now)
    same = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    left = sum(len(piece) for block in same for piece in before[block.a : block.a + block.size])
    return left / sum(map(len, before))
