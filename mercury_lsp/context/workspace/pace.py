"""Paces background work so that it leaves the interpreter to the event loop's thread."""

from time import perf_counter, sleep

WORK_SECONDS = 0.001
REST_SECONDS = 0.004
"""Python makes a computing thread give way only after 5 ms, so background work rests on its own."""


class Pace:
    """Rests for `REST_SECONDS` after every `WORK_SECONDS`; for one thread."""

    def __init__(self) -> None:
        self._work_until = 0.0

    def rest_if_due(self) -> None:
        """Rest if the working time is over; call it at least every half millisecond of work."""
        if perf_counter() >= self._work_until:
            sleep(REST_SECONDS)
            self._work_until = perf_counter() + WORK_SECONDS
