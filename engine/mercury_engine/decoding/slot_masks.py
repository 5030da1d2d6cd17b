"""Slot masks: which tokens a slot may not get, from what it has to spell and whether it may break the line.

Dimensions: V vocabulary with mask and end.
"""

from typing import NamedTuple

import numpy as np

from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.stopping import StoppingCriteria
from mercury_engine.decoding.vocabulary import Vocabulary
from mercury_engine.lru import LeastRecentlyUsed
from mercury_engine.models.arrays import MaskArray
from mercury_engine.prompt.tokenizer import Tokenizer

REMEMBERED_MASKS = 64
"""Number of masks that are remembered."""


class SlotLimits(NamedTuple):
    """What limits a slot: text to spell, whether it may break the line, a token that proved wrong there."""

    spell: str
    multiline: bool
    banned: int | None = None


def next_limits(hypothesis: Hypothesis) -> SlotLimits:
    """The limits of the slot after the accepted tokens."""
    return SlotLimits(hypothesis.spell, hypothesis.multiline, hypothesis.banned.get(len(hypothesis.ids)))


class SlotMasks:
    """The masks of one vocabulary."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: Vocabulary, stopping: StoppingCriteria) -> None:
        self._tokenizer, self._vocabulary, self._stopping = tokenizer, vocabulary, stopping
        self._breaks = set(stopping.breaks.tolist())
        self._masks = LeastRecentlyUsed[SlotLimits, MaskArray](REMEMBERED_MASKS)

    def hidden_tokens(self, limits: SlotLimits) -> MaskArray:
        """bool [V]: tokens that a slot within these limits may not get."""
        return self._masks.get_or_make(limits, lambda: self._made(limits))

    def _made(self, limits: SlotLimits) -> MaskArray:
        hidden_V = np.zeros(len(self._vocabulary.texts) + 2, np.bool_)
        if limits.spell:
            hidden_V[:] = True
            hidden_V[self._allowed(limits.spell, limits.multiline)] = False
        elif not limits.multiline:
            hidden_V[self._stopping.breaks] = True
        hidden_V[self._stopping.ends_text] = True
        hidden_V[self._vocabulary.mask_id] = True
        if limits.banned is not None:
            hidden_V[limits.banned] = True
        return hidden_V

    def _allowed(self, spell: str, multiline: bool) -> list[int]:
        """Tokens that continue a text to spell and, unless `multiline`, do more than break the line after it."""
        texts, breaks = self._vocabulary.texts, self._breaks
        tokens = self._tokenizer.spelling(spell)
        if multiline or (spell.strip() and "\n" not in spell):  # these do more than break the line
            return tokens
        return [i for i in tokens if i not in breaks or "\n" not in texts[i][len(spell) :]]
