"""The rules of a model's vocabulary: what a slot may hold, which tokens end a gap, what a token closes.

A fill ends where the reader expects the text after the gap. A reader of a gap format also writes a special token.

Dimensions: V vocabulary with mask and end.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mercury_engine.decoding.options import Calibration
from mercury_engine.lru import LeastRecentlyUsed
from mercury_engine.models.arrays import IdArray, MaskArray
from mercury_engine.models.network import ModelConfig
from mercury_engine.prompt.tokenizer import LONGEST_TOKEN, Tokenizer
from mercury_engine.text.brackets import CLOSING, CLOSING_MARKS, QUOTES, has_open_bracket

END_MARKS = CLOSING_MARKS + QUOTES
"""Characters that end a gap with any token that begins with them: for `)` a reader may predict `);`."""

CLOSERS = f"{CLOSING};{QUOTES}"
"""Characters that end a bracket, a statement or a string."""

REMEMBERED_STARTS = 256
"""Remembered runs of these characters, with the tokens that begin so."""

REMEMBERED_MASKS = 64
"""Remembered limits, with the tokens that they hide."""


@dataclass(frozen=True, slots=True, eq=False)
class StopTokens:
    """Tokens that mean that the gap is over; compared by identity."""

    tokens: IdArray
    is_certain: bool
    """Whether they can only mean the end, so that none of them may be content."""


class SlotLimits(NamedTuple):
    """What limits a slot: text to spell, whether it may break the line, a token that proved wrong there."""

    spell: str
    multiline: bool
    banned: int | None = None


class GapRules:
    """The rules of one model's vocabulary."""

    def __init__(self, tokenizer: Tokenizer, config: ModelConfig, calibration: Calibration, has_markers: bool) -> None:
        """`has_markers`: the model reads in a gap format, so a special token always means the end."""
        self.tokenizer, self.calibration, self.has_markers = tokenizer, calibration, has_markers
        self.mask_id, self.end_id = config.mask_id, config.end_id
        self.texts = texts = tokenizer.texts + [""] * (config.vocab_size - tokenizer.size)
        """The text of each token; "" for one without text and for unused rows of the embedding."""
        self.breaks = _array(i for i, text in enumerate(texts) if "\n" in text and not text.partition("\n")[0].strip())
        """Tokens that break the line before any text; some vocabularies also join a break to the text before it."""
        special = tokenizer.special_ids
        self.ends_text = _array(i for i, text in enumerate(texts) if not text or text.startswith("<|") or i in special)
        """Tokens that are not text; no fill holds them."""
        self._blanks = frozenset(i for i, text in enumerate(texts) if text and not text.strip(" \t"))
        """Tokens of blanks alone: they come before a digit, too, and do not tell that the text after the gap begins."""
        self.closers = np.unique(_array(token for mark in CLOSERS for token in tokenizer.starting(mark)))
        """The tokens that begin with a mark that closes something."""
        self._starts = LeastRecentlyUsed[str, IdArray](REMEMBERED_STARTS)
        self._hidden = LeastRecentlyUsed[SlotLimits, MaskArray](REMEMBERED_MASKS)
        self._last_stop: tuple[tuple[str, bool], StopTokens] | None = None

    def stop_tokens(self, follows: str, multiline: bool, written: str) -> StopTokens | None:
        """The stop tokens before the text `follows`, given the text written so far; None where the fill cannot end."""
        if follows[:1] and follows[0] in CLOSING_MARKS and has_open_bracket(written):
            return StopTokens(self.ends_text, is_certain=False) if self.has_markers else None
        key = (follows[:LONGEST_TOKEN], multiline)
        if self._last_stop is None or self._last_stop[0] != key:
            stop = self._expected(follows, multiline)
            if self.has_markers:
                stop = replace(stop, tokens=np.union1d(stop.tokens, self.ends_text))
            self._last_stop = key, stop
        return self._last_stop[1]

    def hidden_tokens(self, limits: SlotLimits) -> MaskArray:
        """bool [V]: tokens that a slot within these limits may not get."""
        return self._hidden.get_or_make(limits, lambda: self._hidden_by(limits))

    def closing_starts(self, token: int) -> list[str]:
        """The marks that a token begins with and closes something by: the first one, and so on to all."""
        text = "" if token == self.end_id else self.texts[token]
        return [text[:count] for count in range(1, len(text) - len(text.lstrip(CLOSERS)) + 1)]

    def starting(self, marks: str) -> IdArray:
        """The places among `closers` of the tokens that begin with these marks."""
        return self._starts.get_or_make(marks, lambda: np.searchsorted(self.closers, self.tokenizer.starting(marks)))

    def _expected(self, follows: str, multiline: bool) -> StopTokens:
        """The tokens that the text after the gap begins with."""
        if multiline and follows.startswith(("\n", "\r")):  # the fill may also go on in the next line
            return StopTokens(_array(self.tokenizer.beginning(follows)), is_certain=False)
        if not follows.strip() or follows.startswith(("\n", "\r")):
            return StopTokens(np.concatenate((self.breaks, self.ends_text)), is_certain=False)
        begin = self.tokenizer.spelling(follows[0]) if follows[0] in END_MARKS else self.tokenizer.beginning(follows)
        tokens = _array(token for token in begin if token not in self._blanks)
        return StopTokens(tokens if multiline else np.union1d(tokens, self.breaks), is_certain=True)

    def _hidden_by(self, limits: SlotLimits) -> MaskArray:
        hidden_V = np.zeros(len(self.texts) + 2, np.bool_)
        if limits.spell:
            hidden_V[:] = True
            hidden_V[self._continuing(limits.spell, limits.multiline)] = False
        elif not limits.multiline:
            hidden_V[self.breaks] = True
        hidden_V[self.ends_text] = True
        hidden_V[self.mask_id] = True
        if limits.banned is not None:
            hidden_V[limits.banned] = True
        return hidden_V

    def _continuing(self, spell: str, multiline: bool) -> list[int]:
        """Tokens that continue a text to spell and, unless `multiline`, do more than break the line after it."""
        tokens, breaks = self.tokenizer.spelling(spell), set(self.breaks.tolist())
        if multiline or (spell.strip() and "\n" not in spell):  # these do more than break the line
            return tokens
        return [i for i in tokens if i not in breaks or "\n" not in self.texts[i][len(spell) :]]


def _array(ids: Iterable[int]) -> IdArray:
    return np.array([*ids], np.int64)
