"""How work in the background leaves the interpreter to whoever types."""

from time import perf_counter, sleep

WORK_SECONDS = 0.001
REST_SECONDS = 0.004
"""Seconds. A thread that computes is asked to give way only after 5 ms, so it has to do so by itself."""


class Pace:
    """Rests of `REST_SECONDS` after every `WORK_SECONDS`; for one thread."""

    def __init__(self) -> None:
        self._until = 0.0

    def breathe(self) -> None:
        """Rest, if the time of work is over; to be called at least every half millisecond of work."""
        if perf_counter() >= self._until:
            sleep(REST_SECONDS)
            self._until = perf_counter() + WORK_SECONDS
