"""The present text of a region as the draft of its rewriting: which of its tokens may come next.

While the model writes what already stands there, the draft is the rest of the present text. After a token that it
writes differently, the draft resumes where the present text has the longest match of the last written tokens, so what
stays after an insertion, a deletion or a replacement is verified many tokens at a time, too.

Dimensions: P present tokens.
"""

from collections.abc import Sequence
from copy import copy

from mercury_engine.decoding.autoregressive.drafting import Drafter

LONGEST_MATCH = 8
"""Most written tokens that are compared with the present ones."""

CONTEXT_MATCH = 2
"""Tokens of a match in the context that are enough to draft what follows it there."""

GUESSED_TOKENS = 4
"""Tokens drafted after a guess; after a match or a run, this many for each of its tokens.

In 129 steps of real commits this takes 3 % more passes than full drafts and reads a third fewer rows.
"""

CONFIRMING_RUN = 4
"""Present tokens written in a row after which earlier ones are given up for good; a shorter match may mislead."""


class PresentText:
    """How far the present text has been written again.

    `ids` are the present tokens and, from `length` on, those of the beginning of the text that follows the region; the
    one at `length` may belong to both.
    """

    def __init__(self, ids: Sequence[int], length: int, texts: Sequence[str]) -> None:
        self.ids, self.length, self.texts = ids, length, texts
        self.written: list[int] = []
        self.next = 0
        """The present token that should come next."""
        self._kept = 0
        """Number of present tokens that are certainly done with: draft and matches stay after them."""
        self._done = 0
        """Number of written tokens up to there."""
        self._run = len(ids)
        """Number of tokens written last that are the present ones before `next`; 0 if that is a guess."""

    @property
    def has_all(self) -> bool:
        """Whether the text that follows the region was written whole after the region."""
        follows = len(self.ids) - self.length
        return bool(follows) and self.next == len(self.ids) and self._run >= follows

    @property
    def is_at_end(self) -> bool:
        """Whether nothing of the region is left to be written again."""
        return self.next >= self.length

    def expects(self, token: int) -> bool:
        """Whether the token is the present one that should come next."""
        return self.next < len(self.ids) and self.ids[self.next] == token

    @property
    def is_at_line_start(self) -> bool:
        """Whether the present token that should come next begins a line, or nothing of the region is left."""
        return self.is_at_end or self._is_line_start(self.next)

    @property
    def is_behind_same_break(self) -> bool:
        """Whether the token written last breaks a line, and is the present one before the next."""
        last = self.written[-1] if self.written else None
        return last is not None and self._breaks(last) and self.next > 0 and self.ids[self.next - 1] == last

    def copy(self) -> "PresentText":
        """A copy that can be written on by itself."""
        copied = copy(self)
        copied.written = [*self.written]
        return copied

    def rest(self, most: int, end: int) -> list[int]:
        """At most `most` of the present tokens that should come next, up to `end`."""
        return [*self.ids[self.next : min(end, self.next + most)]]

    def write(self, token: int) -> None:
        """Add a written token."""
        is_expected = self.expects(token)
        self.written.append(token)
        if is_expected:
            self.next, self._run = self.next + 1, self._run + 1
        else:
            self._run = 0
            self._resume()
        if self._run >= CONFIRMING_RUN:
            self._kept, self._done = self.next, len(self.written)

    def draft(self, most: int, end: int, drafter: Drafter) -> list[int]:
        """At most `most` tokens that may come next, of the present ones up to `end`.

        Where these are only guessed, a match in the context is preferred.
        """
        if not self._run:
            match = drafter.match(self.written)
            if match.length >= CONTEXT_MATCH and match.draft:
                return match.draft[:most]
        return self.rest(min(most, GUESSED_TOKENS * max(1, self._run)), end)

    def _resume(self) -> None:
        """Choose the present token that should come next, after a token that is not the expected one."""
        matched, at = self._longest_match()
        if matched:
            self._run, self.next = matched, at
        elif self._breaks(self.written[-1]):
            self.next = self._kept if self._is_line_start(self._kept) else self._line_behind(self._kept)
        else:
            ends_line = self._kept < len(self.ids) and self._breaks(self.ids[self._kept])
            self.next = min(self._kept + (not ends_line), self.length)

    def _line_behind(self, at: int) -> int:
        """The first token of the line after a present token's."""
        while at < self.length and not self._is_line_start(at + 1):
            at += 1
        return min(at + 1, self.length)

    def _is_line_start(self, at: int) -> bool:
        return not at or self._breaks(self.ids[at - 1])

    def _breaks(self, token: int) -> bool:
        return "\n" in self.texts[token]

    def _longest_match(self) -> tuple[int, int]:
        """Length of the longest match of the last tokens written since the change, and its end; the first of equals."""
        longest, end = 0, self._kept
        new = min(LONGEST_MATCH, len(self.written) - self._done)
        for at in range(self._kept + 1, len(self.ids) + 1):
            length, most = 0, min(new, at - self._kept)
            while length < most and self.ids[at - 1 - length] == self.written[-1 - length]:
                length += 1
            if length > longest:
                longest, end = length, at
        return longest, end
