"""The statistics of one connection: observed on the event loop, written by a thread."""

import asyncio
from pathlib import Path

from mercury_lsp.statistics.observer import Observer
from mercury_lsp.statistics.store import default_path
from mercury_lsp.statistics.writer import Writer

SWEEP_SECONDS = 5.0
"""Interval between sweeps."""

CLOSE_SECONDS = 2.0
"""Longest wait for the last rows when the server stops."""


class Statistics:
    """Off until switched on; to be used from the event loop's thread, except for `wait`."""

    def __init__(self, path: Path | None = None):
        self._writer = Writer(path or default_path())
        self._timer: asyncio.TimerHandle | None = None
        self.observer = Observer(self._writer.put, self._sweep_later)

    def close(self) -> None:
        """Have the remaining records written; returns at once."""
        if self._timer is not None:
            self._timer.cancel()
        self.observer.close()
        self._writer.close()

    def wait(self) -> None:
        """Wait up to `CLOSE_SECONDS` for that; call it from a thread that may block."""
        self._writer.wait(CLOSE_SECONDS)

    def _sweep_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        self.observer.sweep()
        if self.observer.is_waiting:
            self._sweep_later()
