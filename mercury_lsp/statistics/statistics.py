"""The statistics of one connection: observed on the event loop, written by threads."""

import asyncio
import logging
from pathlib import Path
from threading import Thread

from mercury_lsp.statistics import store
from mercury_lsp.statistics.observer import Observer
from mercury_lsp.statistics.record import OutcomeRecord

logger = logging.getLogger(__name__)

GATHER_SECONDS = 5.0
"""Time during which rows are gathered for one write."""

CLOSE_SECONDS = 2.0
"""Longest wait for the last rows when the server stops."""

MAX_WAITING_ROWS = 10_000
"""Most rows that wait for a disk that does not answer; further ones are dropped."""


class Statistics:
    """Off until switched on; to be used from the event loop's thread, except for `wait`.

    A failure to write is logged once and stops nothing else.
    """

    def __init__(self, path: Path | None = None):
        self._path = path or store.default_path()
        self._waiting: list[OutcomeRecord] = []
        self._timer: asyncio.TimerHandle | None = None
        self._writing: Thread | None = None
        self._is_closed = self._was_logged = False
        self.observer = Observer(self._put)

    def close(self) -> None:
        """Have the remaining records written; returns at once."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self.observer.close()
        self._write()

    def wait(self) -> None:
        """Wait up to `CLOSE_SECONDS` for that; call it from a thread that may block."""
        if self._writing is not None:
            self._writing.join(CLOSE_SECONDS)

    def _put(self, record: OutcomeRecord) -> None:
        if len(self._waiting) < MAX_WAITING_ROWS:
            self._waiting.append(record)
        if self._timer is None and not self._is_closed:
            self._timer = asyncio.get_running_loop().call_later(GATHER_SECONDS, self._write)

    def _write(self) -> None:
        self._timer = None
        is_busy = self._writing is not None and self._writing.is_alive()
        if not self._waiting or (is_busy and not self._is_closed):
            return  # the next row tries again
        rows, self._waiting = self._waiting, []
        self._writing = Thread(target=self._add, args=(rows,), name="mercury-statistics", daemon=True)
        self._writing.start()

    def _add(self, rows: list[OutcomeRecord]) -> None:
        try:
            store.add(self._path, rows)
        except OSError as error:
            if not self._was_logged:
                self._was_logged = True
                logger.warning("the statistics cannot be written: %s", error)
