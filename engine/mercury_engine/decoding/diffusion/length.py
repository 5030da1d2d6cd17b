"""How many slots a gap gets if the model cannot change their number: CAL, a search without training. arXiv 2602.00476.

The mean confidence of n masks in one forward pass, divided by what it is on average at that length, is highest near the
length of the right text.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mercury_engine.models.batching import ForwardSteps


@dataclass(frozen=True, slots=True)
class LengthBias:
    """The average confidence of n masks: two exponentials and a floor. The defaults are those published for LLaDA 8B.

    `python -m mercury_lab.evaluation lengths` refits them, leaving out lengths within four of the true one.
    """

    height: float = 1.00
    rate: float = 1.77
    slow_height: float = 0.56
    slow_rate: float = 0.06
    floor: float = 0.24

    def at(self, slots: int) -> float:
        """The average confidence at this length."""
        fast = self.height * math.exp(-self.rate * slots)
        return fast + self.slow_height * math.exp(-self.slow_rate * slots) + self.floor


def searched(
    sure: Callable[[Sequence[int]], ForwardSteps[Sequence[float]]],
    bias: LengthBias,
    first: int,
    most: int,
    patience: int = 2,
) -> ForwardSteps[int]:
    """The best length, from `first` upward until `patience` lengths in a row are worse, then downward.

    `sure`: for each length, the mean of the highest probabilities of so many masks; asked once for a length, and
    together for lengths that are tried whatever is found at the others.
    """
    lengths = [n for n in range(first - patience, first + patience + 1) if 1 <= n <= most]
    lengths.sort(key=lambda slots: slots != first)
    found = dict(zip(lengths, (yield from sure(lengths)), strict=True))
    best, highest = first, found[first] / bias.at(first)
    for step, last in ((1, most), (-1, 1)):
        worse, tried = 0, range(first + step, last + step, step)
        for place, slots in enumerate(tried):
            if slots not in found:
                lengths = [*tried[place : place + patience - worse]]
                found |= zip(lengths, (yield from sure(lengths)), strict=True)
            calibrated = found[slots] / bias.at(slots)
            worse = 0 if calibrated > highest else worse + 1
            if calibrated > highest:
                best, highest = slots, calibrated
            if worse == patience:
                break
    return best
