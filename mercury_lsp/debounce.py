"""Work that waits until nothing has postponed it for a while."""

import asyncio
from collections.abc import Callable, Sequence

TYPING_PAUSE_SECONDS = 0.5
"""Seconds without an edit after which the user is taken to have stopped typing."""

MAX_WAITING = 64
"""Documents that wait for a pause. If thousands are opened together, only the last are prepared: a parsed document of
3,000 characters takes 90 KB."""

INDEX_INTERVAL_SECONDS = 0.002
"""Seconds between slices of indexing, each of about a millisecond."""


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


class TypingPauses:
    """Finishes the parse of a document once the user pauses, then indexes a slice at a time.

    The timers of one session; used on the event loop's thread only.
    """

    def __init__(self, on_pause: Callable[[str], None], slices: Sequence[Callable[[], bool]]):
        """`on_pause` gets a document's uri; `slices` each index a little and return whether more is left."""
        self._on_pause, self._slices = on_pause, slices
        self._due: dict[str, float] = {}
        """The event loop's time of each document's pause, the earliest first."""
        self._timer: asyncio.TimerHandle | None = None
        self._indexing: asyncio.TimerHandle | None = None
        self._is_closed = False

    def wait_for_pause(self, uri: str) -> None:
        """Call `on_pause` once the document was left alone for a while."""
        self._due.pop(uri, None)
        self._due[uri] = asyncio.get_running_loop().time() + TYPING_PAUSE_SECONDS
        if len(self._due) > MAX_WAITING:
            del self._due[next(iter(self._due))]
        self._wait()

    def index_soon(self) -> None:
        """Index on, in slices that yield to everything else."""
        if self._indexing is None and not self._is_closed:
            self._indexing = asyncio.get_running_loop().call_later(INDEX_INTERVAL_SECONDS, self._index)

    def close(self) -> None:
        """Start nothing more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _wait(self) -> None:
        """Wait for the first pause. A key moves no timer; a timer that is early waits again."""
        if self._timer is None and self._due and not self._is_closed:
            self._timer = asyncio.get_running_loop().call_at(next(iter(self._due.values())), self._pause)

    def _pause(self) -> None:
        """Do the work of at most one document: a request must not wait for thousands."""
        self._timer = None
        uri, due = next(iter(self._due.items()))
        try:
            if due <= asyncio.get_running_loop().time():
                del self._due[uri]
                self._on_pause(uri)
        finally:
            self._wait()

    def _index(self) -> None:
        self._indexing = None
        if not self._is_closed and any(work() for work in self._slices):
            self.index_soon()
