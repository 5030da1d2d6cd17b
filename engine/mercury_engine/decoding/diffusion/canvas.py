"""The canvas of a masked diffusion model: a row of slots after the accepted tokens of a text, each a mask or a token.

A canvas is a value. A rule reveals slots in any order, masks some again, inserts and deletes. Tokens revealed at the
left end are accepted, and the rest is the next canvas.

Dimensions: S slots.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mercury_engine.api import SlotView
from mercury_engine.models.arrays import FloatArray, IdArray, MaskArray
from mercury_engine.models.row_answers import Drawn, Tokens


@dataclass(frozen=True, slots=True)
class Canvas:
    """Slots, from the left."""

    ids: IdArray
    """int64 [S]."""
    probability: FloatArray
    """float32 [S]: the probability of each token when it was revealed; 0 for masks."""
    tokens: Tokens

    @classmethod
    def masked(cls, slots: int, tokens: Tokens) -> "Canvas":
        """A canvas of masks."""
        return cls(np.full(slots, tokens.mask, np.int64), np.zeros(slots, np.float32), tokens)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def is_mask(self) -> MaskArray:
        """bool [S]."""
        return self.ids == self.tokens.mask

    def revealed(self, chosen: IdArray | MaskArray, drawn: Drawn) -> "Canvas":
        """The canvas with the drawn tokens in the chosen slots."""
        ids_S, sure_S = self.ids.copy(), self.probability.copy()
        ids_S[chosen], sure_S[chosen] = drawn.token_S[chosen], drawn.probability_S[chosen]
        if (end := self.tokens.end) is not None and end in ids_S:
            after = int(np.argmax(ids_S == end)) + 1
            ids_S[after:], sure_S[after:] = end, 1.0
        return Canvas(ids_S, sure_S, self.tokens)

    def masked_again(self, chosen: IdArray | MaskArray) -> "Canvas":
        """The canvas with masks in the chosen slots."""
        ids_S, sure_S = self.ids.copy(), self.probability.copy()
        ids_S[chosen], sure_S[chosen] = self.tokens.mask, 0.0
        return Canvas(ids_S, sure_S, self.tokens)

    def repeated(self, times_S: IdArray) -> "Canvas":
        """The canvas with each slot repeated: 0 times deletes it, 2 times inserts a copy."""
        return Canvas(self.ids.repeat(times_S), self.probability.repeat(times_S), self.tokens)

    def __getitem__(self, slots: slice) -> "Canvas":
        return Canvas(self.ids[slots], self.probability[slots], self.tokens)

    def __add__(self, other: "Canvas") -> "Canvas":
        ids_S, sure_S = np.concatenate((self.ids, other.ids)), np.concatenate((self.probability, other.probability))
        return Canvas(ids_S, sure_S, self.tokens)

    def views(self, texts: Sequence[str]) -> list[SlotView]:
        """The slots for displaying the denoising."""
        return [self._view(*slot, texts) for slot in zip(self.ids.tolist(), self.probability.tolist(), strict=True)]

    def _view(self, token: int, probability: float, texts: Sequence[str]) -> SlotView:
        if token == self.tokens.mask:
            return SlotView("", "mask", 0.0)
        if token == self.tokens.end:
            return SlotView("", "end", probability)
        return SlotView(texts[token], "committed", probability)
