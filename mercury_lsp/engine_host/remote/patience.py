"""How long a server may stay silent, learned from its usual answers, and when it is given up."""

MIN_SECONDS, MAX_SECONDS = 1.0, 2.0
"""Bounds of the time in which an answer has to begin."""

LATE = 4.0
"""An answer is late if it has not begun after this many times the usual time of whole answers."""

LEARNING_RATE = 0.2

MAX_MISSED = 3
"""Misses in a row after which the server counts as not answering."""


class Patience:
    """Judges a server by one kind of question.

    A miss is a question whose time is up. Questions that were withdrawn as the user typed on count together, if each
    waited longer than usual.
    """

    def __init__(self, usual: float):
        """`usual`: seconds that the first answer is expected to take."""
        self._usual, self._waited, self._missed = usual, 0.0, 0

    @property
    def seconds(self) -> float:
        """Time in which an answer has to begin."""
        return min(max(LATE * self._usual, MIN_SECONDS), MAX_SECONDS)

    @property
    def is_over(self) -> bool:
        """Whether the server counts as not answering."""
        return self._missed >= MAX_MISSED

    def answered(self, seconds: float) -> None:
        self._usual += LEARNING_RATE * (seconds - self._usual)
        self.renew()

    def missed(self) -> None:
        self._waited, self._missed = 0.0, self._missed + 1

    def withdrawn(self, seconds: float) -> None:
        """Nobody waits any longer for an answer that did not come after so long."""
        if seconds > self._usual:
            self._waited += seconds
        if self._waited >= self.seconds:
            self.missed()

    def renew(self) -> None:
        """Forget the misses."""
        self._waited, self._missed = 0.0, 0
