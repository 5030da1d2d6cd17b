"""The SQLite file with the statistics; several processes may write to it at once."""

import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, fields
from pathlib import Path
from time import strftime, time

from platformdirs import user_state_path

from mercury_lsp import private_files
from mercury_lsp.errors import StatisticsError
from mercury_lsp.statistics.record import OutcomeRecord

logger = logging.getLogger(__name__)

SCHEMA_VERSION = 1
"""Stored in the file as `user_version`; 0 means a file without tables."""

RETENTION_DAYS = 400
"""Age at which rows are deleted."""

MAX_ROWS = 500_000
"""Most rows kept, about 50 MB; the oldest ones beyond are deleted."""

BUSY_SECONDS = 5.0
"""Longest wait for another process that writes."""

_NAMES = [field.name for field in fields(OutcomeRecord)]

_CREATE = f"""
CREATE TABLE shown (
  shown_at INTEGER NOT NULL, language TEXT NOT NULL, client TEXT NOT NULL, model TEXT NOT NULL,
  automatic INTEGER NOT NULL, confidence REAL NOT NULL, latency_ms REAL NOT NULL, length INTEGER NOT NULL,
  outcome TEXT NOT NULL, typed INTEGER NOT NULL, saved INTEGER NOT NULL, kept INTEGER NOT NULL);
CREATE INDEX shown_by_time ON shown (shown_at);
PRAGMA user_version = {SCHEMA_VERSION};
"""

_INSERT = f"INSERT INTO shown ({', '.join(_NAMES)}) VALUES ({', '.join('?' * len(_NAMES))})"

_BEYOND = "SELECT shown_at FROM shown ORDER BY shown_at DESC LIMIT 1 OFFSET ?"


def default_path() -> Path:
    """The path of the statistics, below $XDG_STATE_HOME or the platform's equivalent."""
    return user_state_path("mercury-lsp", appauthor=False) / "statistics.sqlite"


def connect(path: Path) -> sqlite3.Connection:
    """A connection to the file, created if missing and pruned of old rows. A damaged file is renamed and replaced.

    Raises StatisticsError for a newer version's schema, and OSError or sqlite3.Error for anything else.
    """
    seen = identity(path)
    try:
        return _connect(path)
    except sqlite3.DatabaseError as error:
        if not is_damaged(error):
            raise
        set_aside(path, seen)
        return _connect(path)


def add(connection: sqlite3.Connection, records: Sequence[OutcomeRecord]) -> None:
    """Write rows in one transaction. Raises sqlite3.Error."""
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        connection.executemany(_INSERT, [astuple(record) for record in records])


def read(path: Path, since: float) -> list[OutcomeRecord]:
    """The rows since a time, oldest first; none if there is no file. Raises StatisticsError."""
    with _readable(path) as connection:
        if connection is None:
            return []
        rows = connection.execute(
            f"SELECT {', '.join(_NAMES)} FROM shown WHERE shown_at >= ? ORDER BY shown_at", (since,)
        )
        return [OutcomeRecord(*(*row[:4], bool(row[4]), *row[5:])) for row in rows]


def reset(path: Path) -> int:
    """Delete all rows; returns their number. Raises StatisticsError."""
    with _readable(path) as connection:
        if connection is None:
            return 0
        deleted = connection.execute("DELETE FROM shown").rowcount
        connection.execute("VACUUM")
        return deleted


def is_damaged(error: sqlite3.Error) -> bool:
    """Whether the file is corrupt, or no database at all."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_locked(error: sqlite3.Error) -> bool:
    """Whether another process is writing."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def identity(path: Path) -> int | None:
    """Distinguishes a file from another one at the same path; None if there is no file."""
    return path.stat().st_ino if path.exists() else None


def set_aside(path: Path, seen: int | None) -> None:
    """Rename the damaged file that was seen, unless another process already has; deletes nothing. Raises OSError."""
    if identity(path) != seen:
        return
    mark = f"damaged-{strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    for end in ("", "-wal", "-shm"):
        part = path.with_name(path.name + end)
        if part.exists():
            part.rename(path.with_name(f"{path.name}.{mark}{end}"))
    logger.warning("%s was damaged; it is now %s.%s, and a new file is started", path, path.name, mark)


def _connect(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_own(path)
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            if not _version(connection, path):
                for statement in _CREATE.strip().rstrip(";").split(";\n"):
                    connection.execute(statement)
            _prune(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _require_own(path: Path) -> None:
    """Raise PermissionError unless the database is a file of ours, beside which nobody else can place another one."""
    private_files.check_folder(path.parent)
    private_files.require_own(path)
    for part in (path.with_name(path.name + end) for end in ("-wal", "-shm")):
        if os.path.lexists(part):
            with suppress(FileNotFoundError):  # SQLite deletes them at any time
                private_files.require_own(part)


def _prune(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM shown WHERE shown_at < ?", (time() - RETENTION_DAYS * 86_400,))
    if found := connection.execute(_BEYOND, (MAX_ROWS,)).fetchone():
        connection.execute("DELETE FROM shown WHERE shown_at <= ?", found)


@contextmanager
def _readable(path: Path) -> Iterator[sqlite3.Connection | None]:
    """A connection for the commands; None if there are no rows yet."""
    try:
        if not path.exists():
            yield None
            return
        _require_own(path)
        with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
            yield connection if _version(connection, path) else None
    except OSError as error:
        raise StatisticsError(f"{path} cannot be read: {error.strerror or error}") from error
    except sqlite3.Error as error:
        fix = "the server sets it aside when it next writes" if is_damaged(error) else "try again, or move it away"
        raise StatisticsError(f"{path} cannot be used: {error}; {fix}") from error


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """The file's schema version; 0 for a new file. Raises StatisticsError if it is newer than ours."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise StatisticsError(f"{path} was written by a newer mercury-lsp; upgrade this one, or move the file away")
    return version
