"""The thread that writes the statistics."""

import logging
import sqlite3
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Thread

from mercury_lsp.errors import StatisticsError
from mercury_lsp.statistics import store
from mercury_lsp.statistics.record import Record

logger = logging.getLogger(__name__)

GATHER_SECONDS = 5.0
"""How long rows are gathered for one transaction."""

MAX_WAITING_ROWS = 10_000
"""Rows; further ones are dropped while the file cannot be written."""


class Writer:
    """Takes rows without waiting; begins with the first one. What fails is logged once and stops nothing else."""

    def __init__(self, path: Path):
        self._path = path
        self._queue: Queue[Record | None] = Queue(MAX_WAITING_ROWS)
        """None stands behind the last row."""
        self._thread: Thread | None = None
        self._closing = Event()
        self._connection: sqlite3.Connection | None = None
        self._opened: int | None = None
        """Which file the connection is to."""
        self._has_failed = False
        self._was_logged = False

    def put(self, record: Record) -> None:
        """Write a row soon."""
        if self._has_failed:
            return
        if self._thread is None:
            self._thread = Thread(target=self._run, name="mercury-statistics", daemon=True)
            self._thread.start()
        try:
            self._queue.put_nowait(record)
        except Full:
            self._complain("too many rows wait; further ones are dropped")

    def close(self) -> None:
        """Have the rest written; returns at once."""
        self._closing.set()
        if self._thread is not None and not self._has_failed:
            try:
                self._queue.put_nowait(None)
            except Full:
                self._complain("too many rows wait; they are dropped")

    def wait(self, timeout: float) -> None:
        """Wait for the rest to be written after `close`, no longer than timeout, in seconds."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        waiting: list[Record] = []
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

    def _gather(self) -> tuple[list[Record], bool]:
        """The rows of some seconds, and whether they are the last.

        In between it does not listen: waking for every row would take the interpreter from whoever has put it.
        """
        found = [self._queue.get()]
        self._closing.wait(GATHER_SECONDS)
        while found[-1] is not None:
            try:
                found.append(self._queue.get_nowait())
            except Empty:
                break
        return [each for each in found if each is not None], found[-1] is None

    def _write(self, rows: list[Record]) -> list[Record]:
        """Write them; those that must wait because the file is locked. Raises what can not be mended."""
        try:
            self._add(rows)
        except sqlite3.Error as error:
            if store.is_damaged(error):
                self._disconnect()
                store.set_aside(self._path, self._opened)
                self._add(rows)
            elif store.is_locked(error):
                self._complain("another process has locked it; rows wait")
                return rows
            else:
                raise
        return []

    def _add(self, rows: list[Record]) -> None:
        if self._connection is None:
            self._connection = store.opened(self._path)
            self._opened = store.identity(self._path)
        store.add(self._connection, rows)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _complain(self, reason: str) -> None:
        if not self._was_logged:
            self._was_logged = True
            logger.warning("the statistics cannot be written: %s", reason)
