"""The statistics of one connection: observed on the event loop, written by threads."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from time import time

from mercury_lsp.completion.price import Price
from mercury_lsp.errors import StatisticsError
from mercury_lsp.statistics import store
from mercury_lsp.statistics.observer import Observer
from mercury_lsp.statistics.store import OutcomeRecord

logger = logging.getLogger(__name__)

GATHER_SECONDS = 5.0
"""Seconds for which rows are gathered for one write."""

CLOSE_SECONDS = 2.0
"""Longest wait for the last rows when the server stops."""

LEARNED_ROWS = 1_000
"""Number of latest rows from which the price of a look is learned at the start."""

MAX_WAITING_ROWS = 10_000
"""Most rows that wait for a stalled disk; further ones are dropped."""


class Statistics:
    """Off until switched on; used on the event loop's thread only, except for `wait`.

    A failure to write is logged once and stops nothing else.
    """

    def __init__(self, price: Price, path: Path | None = None):
        self._path, self._price = path or store.default_path(), price
        self._waiting: list[OutcomeRecord] = []
        self._timer: asyncio.TimerHandle | None = None
        self._writing: Thread | None = None
        self._is_closed = self._was_logged = False
        self.observer = Observer(self._put)

    def switch(self, on: bool) -> None:
        """Start counting, and teach the price the earlier counts; or stop, and let the price forget them."""
        if on and not self.observer.is_on:
            loop = asyncio.get_running_loop()
            Thread(target=self._load, args=(loop,), name="mercury-statistics-reader", daemon=True).start()
        elif not on:
            self._price.forget()
        self.observer.switch(on)

    def asked(self, model: str, requests: int) -> None:
        """Count requests sent to an edit server."""
        for _ in range(requests if self.observer.is_on else 0):
            self._put(OutcomeRecord(int(time()), "", "", model, True, 0.0, 0.0, 0, "asked", 0))

    def close(self) -> None:
        """Write the remaining records in a thread; returns at once."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self.observer.close()
        self._write()

    def wait(self) -> None:
        """Wait up to `CLOSE_SECONDS` for the last write; call it on a thread that may block."""
        if self._writing is not None:
            self._writing.join(CLOSE_SECONDS)

    def _load(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            rows = store.latest(self._path, LEARNED_ROWS)
        except StatisticsError as error:
            logger.warning("the price of a look starts at its default: %s", error)
            return
        self._on_loop(loop, partial(self._learn, rows))

    def _learn(self, rows: Sequence[OutcomeRecord], from_scratch: bool = False) -> None:
        if from_scratch:
            self._price.forget()
        for row in rows if self.observer.is_on else ():
            learn(self._price, row)

    def _on_loop(self, loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop may have been closed meanwhile
            loop.call_soon_threadsafe(call)

    def _put(self, record: OutcomeRecord) -> None:
        self._learn([record])
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
        loop = None if self._is_closed else asyncio.get_running_loop()
        self._writing = Thread(target=self._add, args=(rows, loop), name="mercury-statistics", daemon=True)
        self._writing.start()

    def _add(self, rows: list[OutcomeRecord], loop: asyncio.AbstractEventLoop | None) -> None:
        try:
            if loop is not None and not store.files(self._path):  # the rows were deleted, or these are the first
                self._on_loop(loop, partial(self._learn, rows, from_scratch=True))
            store.add(self._path, rows)
        except OSError as error:
            if not self._was_logged:
                self._was_logged = True
                logger.warning("the statistics cannot be written: %s", error)


def learn(price: Price, row: OutcomeRecord) -> bool:
    """Teach the price whether an automatic suggestion was accepted; returns False for rows that do not say it.

    Those are suggestions that were requested, ignored or typed by hand, and damaged rows.
    """
    counts = row.automatic and row.outcome in ("accepted", "partly", "rejected") and isinstance(row.language, str)
    if counts:
        price.learn(row.language, row.outcome != "rejected")
    return counts
