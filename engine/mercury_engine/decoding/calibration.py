"""Calibration: maps a fill's confidence to the probability that the fill is kept, as fitted on held-out text."""

from collections.abc import Sequence

import numpy as np


class Calibration:
    """A rising piecewise linear map through the knots (confidence, share kept); without knots the identity.

    Raises ValueError unless every knot is a pair of numbers from 0 to 1, in rising order.
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
