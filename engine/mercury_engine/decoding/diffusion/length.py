"""How many slots a gap gets if the model cannot change their number: CAL, a search without training. arXiv 2602.00476.

The mean confidence of n masks in one forward pass, divided by what it is on average at that length, is highest near the
length of the right text.
"""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass

LengthSearch = Generator[int, float, int]
"""Yields lengths to try, gets the mean of the masks' highest probabilities at each, and returns the best length."""


@dataclass(frozen=True, slots=True)
class LengthBias:
    """The average confidence of n masks: two exponentials and a floor. The defaults are those published for LLaDA 8B.

    `calibrate` refits them for a model, leaving out lengths within four of the true one.
    """

    fast: tuple[float, float] = (1.00, 1.77)
    slow: tuple[float, float] = (0.56, 0.06)
    floor: float = 0.24

    @classmethod
    def of(cls, fit: Sequence[float]) -> "LengthBias":
        """The bias of a stored fit, see `DiffusionOptions.length_bias`."""
        height, rate, slow_height, slow_rate, floor = fit
        return cls((height, rate), (slow_height, slow_rate), floor)

    def at(self, slots: int) -> float:
        """The average confidence at this length."""
        return sum(height * math.exp(-rate * slots) for height, rate in (self.fast, self.slow)) + self.floor


@dataclass(frozen=True, slots=True)
class CalibratedLength:
    """The search: from `first` upward until `patience` lengths in a row are worse, then downward."""

    bias: LengthBias = LengthBias()
    first: int = 8
    patience: int = 2
    most: int = 64

    def search(self) -> LengthSearch:
        """See `LengthSearch`; tries every length at most once."""
        best, highest = self.first, (yield self.first) / self.bias.at(self.first)
        for step, last in ((1, self.most), (-1, 1)):
            worse = 0
            for slots in range(self.first + step, last + step, step):
                found = (yield slots) / self.bias.at(slots)
                worse = 0 if found > highest else worse + 1
                if found > highest:
                    best, highest = slots, found
                if worse == self.patience:
                    break
        return best
