"""Writes the statistics on a thread."""

import logging
import sqlite3
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Thread

from mercury_lsp.errors import StatisticsError
from mercury_lsp.statistics import store
from mercury_lsp.statistics.record import OutcomeRecord

logger = logging.getLogger(__name__)

GATHER_SECONDS = 5.0
"""Time during which rows are gathered for one transaction."""

MAX_WAITING_ROWS = 10_000
"""Most rows that wait while the file cannot be written; further ones are dropped."""


class Writer:
    """Takes rows without blocking; the first one starts the thread. A failure is logged once and stops nothing else."""

    def __init__(self, path: Path):
        self._path = path
        self._queue: Queue[OutcomeRecord | None] = Queue(MAX_WAITING_ROWS)
        """None marks the end."""
        self._thread: Thread | None = None
        self._closing = Event()
        self._connection: sqlite3.Connection | None = None
        self._identity: int | None = None
        """The identity of the connected file."""
        self._has_failed = False
        self._was_logged = False

    def put(self, record: OutcomeRecord) -> None:
        """Queue a row."""
        if self._has_failed:
            return
        if self._thread is None:
            self._thread = Thread(target=self._run, name="mercury-statistics", daemon=True)
            self._thread.start()
        try:
            self._queue.put_nowait(record)
        except Full:
            self._complain("too many rows are waiting; further ones are dropped")

    def close(self) -> None:
        """Have the remaining rows written; returns at once."""
        self._closing.set()
        if self._thread is not None and not self._has_failed:
            try:
                self._queue.put_nowait(None)
            except Full:
                self._complain("too many rows are waiting; they are dropped")

    def wait(self, timeout: float) -> None:
        """Wait up to `timeout` seconds for the remaining rows to be written, after `close`."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        waiting: list[OutcomeRecord] = []
        is_last = False
        try:
            while not is_last:
                more, is_last = self._gather()
                waiting = self._write((waiting + more)[-MAX_WAITING_ROWS:])
        except (OSError, StatisticsError, sqlite3.Error) as error:
            self._has_failed = True
            self._complain(f"{error}; nothing is counted until the next start")
        finally:
            self._disconnect()

    def _gather(self) -> tuple[list[OutcomeRecord], bool]:
        """The rows of `GATHER_SECONDS`, and whether they are the last.

        It does not listen meanwhile: waking for every row would take the interpreter from the thread that put it.
        """
        found = [self._queue.get()]
        self._closing.wait(GATHER_SECONDS)
        while found[-1] is not None:
            try:
                found.append(self._queue.get_nowait())
            except Empty:
                break
        return [each for each in found if each is not None], found[-1] is None

    def _write(self, rows: list[OutcomeRecord]) -> list[OutcomeRecord]:
        """Write rows; returns those that must wait for a locked file. Raises errors that a retry cannot fix."""
        try:
            self._add(rows)
        except sqlite3.Error as error:
            if store.is_damaged(error):
                self._disconnect()
                store.set_aside(self._path, self._identity)
                self._add(rows)
            elif store.is_locked(error):
                self._complain("another process has locked the file; rows wait")
                return rows
            else:
                raise
        return []

    def _add(self, rows: list[OutcomeRecord]) -> None:
        if self._connection is None:
            self._connection = store.connect(self._path)
            self._identity = store.identity(self._path)
        store.add(self._connection, rows)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _complain(self, reason: str) -> None:
        if not self._was_logged:
            self._was_logged = True
            logger.warning("the statistics cannot be written: %s", reason)
