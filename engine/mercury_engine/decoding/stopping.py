"""Stopping: where a fill ends.

A fill ends where the reader expects the text after the gap. A reader of a gap format also writes a special token.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from mercury_engine.models.arrays import IdArray
from mercury_engine.prompt.tokenizer import LONGEST_TOKEN, Tokenizer
from mercury_engine.text.boundaries import CLOSING_MARKS
from mercury_engine.text.brackets import QUOTES, REMEMBERED_TEXTS, has_open_bracket, outside_strings

END_MARKS = CLOSING_MARKS + QUOTES
"""Characters that end a gap with any token that begins with them: for `)` a reader may predict `);`."""


@dataclass(frozen=True, slots=True)
class StopTokens:
    """Tokens that mean that the gap is over."""

    tokens: IdArray
    is_certain: bool
    """Whether they can only mean the end, so that none of them may be content."""


class StoppingCriteria:
    """The stop tokens of one vocabulary; remembers the last ones."""

    def __init__(self, tokenizer: Tokenizer, texts: list[str], has_markers: bool = False) -> None:
        """`has_markers`: the reader reads in a gap format, so a special token always means the end."""
        self._tokenizer, self._has_markers = tokenizer, has_markers
        self.breaks = _array(
            [i for i, text in enumerate(texts) if "\n" in text and not text.partition("\n")[0].strip()]
        )
        """Tokens that break the line before any text; some vocabularies also join a break to the text before it."""
        special = tokenizer.special_ids
        self.ends_text = _array(
            [i for i, text in enumerate(texts) if not text or text.startswith("<|") or i in special]
        )
        """Tokens that are not text; no fill holds them."""
        self._blanks = frozenset(i for i, text in enumerate(texts) if text and not text.strip(" \t"))
        """Tokens of blanks alone: they come before a digit, too, and do not tell that the text after the gap begins."""
        self._last: tuple[tuple[str, bool], StopTokens] | None = None

    def at(self, follows: str, multiline: bool, written: str) -> StopTokens | None:
        """The stop tokens before the text `follows`, given the text written so far; None where the fill cannot end."""
        if follows[:1] and follows[0] in CLOSING_MARKS and has_open_bracket(written):
            return StopTokens(self.ends_text, is_certain=False) if self._has_markers else None
        key = (follows[:LONGEST_TOKEN], multiline)
        if self._last is None or self._last[0] != key:
            self._last = key, self._found(follows, multiline)
        return self._last[1]

    def _found(self, follows: str, multiline: bool) -> StopTokens:
        stop = self._expected(follows, multiline)
        return replace(stop, tokens=np.union1d(stop.tokens, self.ends_text)) if self._has_markers else stop

    def _expected(self, follows: str, multiline: bool) -> StopTokens:
        if multiline and follows.startswith(("\n", "\r")):  # the fill may also go on in the next line
            return StopTokens(_array(self._tokenizer.beginning(follows)), is_certain=False)
        if not follows.strip() or follows.startswith(("\n", "\r")):
            return StopTokens(np.concatenate((self.breaks, self.ends_text)), is_certain=False)
        begin = self._tokenizer.spelling(follows[0]) if follows[0] in END_MARKS else self._tokenizer.beginning(follows)
        tokens = _array([token for token in begin if token not in self._blanks])
        return StopTokens(tokens if multiline else np.union1d(tokens, self.breaks), is_certain=True)


def first_line_end(text: str) -> int | None:
    """The position of the first line break; None if there is none."""
    at = text.find("\n")
    return None if at < 0 else at - text[:at].endswith("\r")


@lru_cache(REMEMBERED_TEXTS)
def find_end(text: str, follows: str) -> int | None:
    """The position where a text continues into the text after the gap; None if it does not.

    One token may hold both, as `")` does. The text continues there with a bracket that it did not open, or with a mark
    outside all brackets and strings.
    """
    if not follows or follows[0] not in CLOSING_MARKS:
        return None
    before = 0
    for at, character, depth in outside_strings(text):
        if character == follows[0] and not before and depth <= 0:
            return at
        before = max(0, depth)
    return None


def _array(ids: list[int]) -> IdArray:
    return np.array(ids, np.int64)
