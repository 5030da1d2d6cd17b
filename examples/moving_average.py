"""Smooths a series of measurements."""

from collections import deque


class MovingAverage:
    """Mean of the last `size` values."""

    def __init__(self, size: int):
        self.size = size
        self.values: deque[float] = deque(maxlen=size)
        self.total = 0.0

    def add(self, value: float) -> float:
        """Take in one value; returns the mean so far."""
        if len(self.values) == self.size:
            self.total -= self.values[0]
        self.values.append(value)
        self.total += ‹cursor›
        return self.total / len(self.values)

    def reset(self) -> None:
        """Forget all values."""
        self.values.clear()
        self.total = 0.0
