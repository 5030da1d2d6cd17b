"""Work that waits until the user pauses: finishing the parse of a document, then indexing a slice at a time."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from mercury_lsp.debounce import Debounced

TYPING_PAUSE_SECONDS = 0.5
"""Seconds without an edit after which the user is taken to have stopped typing."""

MAX_WAITING = 64
"""Documents that wait for a pause. If thousands are opened together, only the last are prepared: a parsed document of
3,000 characters takes 90 KB."""

INDEX_INTERVAL_SECONDS = 0.002
"""Seconds between slices of indexing, each of about a millisecond."""


class TypingPauses:
    """Timers of one session; used on the event loop's thread only."""

    def __init__(self, on_pause: Callable[[str], None], slices: Sequence[Callable[[], bool]]):
        """`on_pause` gets a document's uri; `slices` each index a little and return whether more is left."""
        self._on_pause, self._slices = on_pause, slices
        self._waiting: dict[str, Debounced] = {}
        self._paused: dict[str, None] = {}
        """Documents whose pause has come."""
        self._indexing: asyncio.TimerHandle | None = None
        self._is_closed = False

    def wait_for_pause(self, uri: str) -> None:
        """Call `on_pause` once the document was left alone for a while."""
        if uri not in self._waiting:
            self._waiting[uri] = Debounced(partial(self._pause, uri))
            if len(self._waiting) > MAX_WAITING:
                self._waiting.pop(next(iter(self._waiting))).cancel()
        self._waiting[uri].postpone(TYPING_PAUSE_SECONDS)

    def index_soon(self) -> None:
        """Index on, in slices that yield to everything else."""
        if self._indexing is None and not self._is_closed:
            self._indexing = asyncio.get_running_loop().call_later(INDEX_INTERVAL_SECONDS, self._index)

    def close(self) -> None:
        """Start nothing more."""
        self._is_closed = True
        for waiting in self._waiting.values():
            waiting.cancel()

    def _pause(self, uri: str) -> None:
        del self._waiting[uri]
        if not self._paused:
            asyncio.get_running_loop().call_soon(self._take_turn)
        self._paused[uri] = None

    def _take_turn(self) -> None:
        """Do one document's work: a request must not wait for thousands."""
        uri = next(iter(self._paused))
        if not self._is_closed:
            try:
                self._on_pause(uri)
            finally:
                del self._paused[uri]
                if self._paused:
                    asyncio.get_running_loop().call_soon(self._take_turn)

    def _index(self) -> None:
        self._indexing = None
        if not self._is_closed and any(work() for work in self._slices):
            self.index_soon()
