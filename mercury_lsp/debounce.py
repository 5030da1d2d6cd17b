"""Calls that are put off for as long as something goes on."""

import asyncio
from collections.abc import Callable


class Debounced:
    """Calls a function once nothing has put it off for a while; to be used from the event loop's thread.

    The timer is not moved at every key, which would cost 9 microseconds, but looks when it is over whether it is time.
    """

    def __init__(self, call: Callable[[], object]):
        self._call = call
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def put_off(self, seconds: float) -> None:
        """Call so many seconds from now, and not before."""
        loop = asyncio.get_running_loop()
        self._due = loop.time() + seconds
        if self._timer is None or self._timer.when() > self._due:
            self.cancel()
            self._timer = loop.call_at(self._due, self._look)

    def cancel(self) -> None:
        """Do not call."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        if self._due > loop.time():
            self._timer = loop.call_at(self._due, self._look)
        else:
            self._call()
