"""How a model decodes: the values that its settings.json may fit, by kind of model, and how fills are calibrated."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np

from mercury_engine.api import MAX_SLOTS


@dataclass(frozen=True, slots=True)
class AutoregressiveOptions:
    """Options of causal models. Raises ValueError for a share outside [0, 1] and a number of tokens out of range."""

    lookahead: int = 8
    """Largest number of draft tokens that a pass verifies; 0 decodes one token a pass, for comparison."""
    recall: float = 0.06
    """Share of the n-gram's opinion in unread text, per matching token beyond the first.

    Fitted for the bundled model; a better one needs less.
    """

    def __post_init__(self) -> None:
        if not 0 <= self.recall <= 1:
            raise ValueError(f"recall is {self.recall}; it must be from 0 to 1")
        if type(self.lookahead) is not int or not 0 <= self.lookahead <= MAX_SLOTS:
            raise ValueError(f"lookahead is {self.lookahead!r}; it must be an integer from 0 to {MAX_SLOTS}")


@dataclass(frozen=True, slots=True)
class DiffusionOptions:
    """Options of masked diffusion models. Raises ValueError for numbers out of range."""

    bound: float = 0.1
    """Entropy, in nats, that the slots unmasked in one step may add up to, without the largest."""
    threshold: float | None = None
    """Lowest probability of a slot that is unmasked; replaces the entropy bound."""
    schedule: Literal["path planning", "linear"] | None = None
    """A sampler with a fixed number of steps, for models with full attention; replaces both."""
    length_bias: tuple[float, float, float, float, float] | None = None
    """A fit of `length.LengthBias`: its five numbers; None for the published one."""
    searches_length: bool = True
    """Whether the model or a search finds the number of slots; otherwise it is the most that a request allows."""
    exact: bool = False
    """Whether a model with full attention reads its whole context in every step, not only in the first."""

    def __post_init__(self) -> None:
        if not 0 <= self.bound < inf or not (self.threshold is None or 0 <= self.threshold <= 1):
            raise ValueError(f"bound is {self.bound} and threshold {self.threshold}; they are nats and a probability")
        if self.length_bias is not None and len(self.length_bias) != 5:
            raise ValueError(f"length_bias is {self.length_bias}; it must be five numbers, see evaluation lengths")
        if self.schedule not in (None, "path planning", "linear"):
            raise ValueError(f"schedule is {self.schedule!r}; known are 'path planning' and 'linear'")


DecodingOptions = AutoregressiveOptions | DiffusionOptions


class Calibration:
    """Maps the confidence of a fill to the probability that it is kept, as fitted on held-out text.

    A rising piecewise linear map through the knots (confidence, share kept); without knots the identity. Raises
    ValueError unless every knot is a pair of numbers from 0 to 1, in rising order.
    """

    def __init__(self, knots: Sequence[Sequence[float]] = ()) -> None:
        pairs = all(len(knot) == 2 and all(0 <= value <= 1 for value in knot) for knot in knots)
        if not pairs or any(list(knots[i]) > list(knots[i + 1]) for i in range(len(knots) - 1)):
            raise ValueError("the calibration is not a list of rising pairs of numbers from 0 to 1")
        self._raw, self._kept = zip(*(knots or ((0.0, 0.0), (1.0, 1.0))), strict=True)
        self._curve = np.array(self._raw), np.array(self._kept)

    def kept(self, confidence: float) -> float:
        """The probability that a fill of this confidence is kept, from 0 to 1."""
        return float(np.interp(confidence, *self._curve))

    def raw(self, kept: float) -> float:
        """The lowest confidence that maps to this probability; 1 if none does."""
        if kept <= self._kept[0]:
            return self._raw[0]
        right = next((i for i, value in enumerate(self._kept) if value >= kept), None)
        if right is None:
            return 1.0
        (x0, x1), (y0, y1) = self._raw[right - 1 : right + 1], self._kept[right - 1 : right + 1]
        return float(x0 + (x1 - x0) * (kept - y0) / (y1 - y0))
