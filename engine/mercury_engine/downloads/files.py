"""Checks of downloaded files, and what goes wrong with the disk."""

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mercury_engine.errors import DownloadCorrupt, StorageError

_FULL = (errno.ENOSPC, errno.EDQUOT)
"""Numbers of the errors that a full disk or a used-up quota raises."""

_OTHER_FOLDER = "set XDG_DATA_HOME to a folder that you may write in"

FREE_SPACE_ADVICE = "free some space, or set XDG_DATA_HOME to a folder on another disk, then run the same command again"


def check(path: Path, sha256: str | None, size: int | None = None) -> None:
    """Delete the file and raise DownloadCorrupt unless it has this size and hash; None is not checked."""
    found = path.stat().st_size
    if size is not None and found != size:
        path.unlink()
        raise DownloadCorrupt(f"{path.name} has {found:,} bytes, expected {size:,}; {_AGAIN}")
    with path.open("rb") as file:
        digest = sha256 and hashlib.file_digest(file, "sha256").hexdigest()
    if digest != sha256:
        path.unlink()
        raise DownloadCorrupt(f"{path.name} has sha256 {digest}, expected {sha256}; {_AGAIN}")


_AGAIN = "the file was damaged or altered on its way and has been deleted: run the same command again"


def sync(path: Path) -> None:
    """Return when a file, or a folder's list of files, is on the disk."""
    if path.is_dir() and os.name == "nt":  # Windows opens no folders
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def bytes_in(folder: Path) -> int:
    """Bytes of the files in a folder and below it."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def require_space(folder: Path, size: int) -> None:
    """Raise StorageError unless this many bytes are free on the folder's disk."""
    free = shutil.disk_usage(folder).free
    if free < size:
        raise StorageError(
            f"{folder} has {free / 1e6:,.0f} MB free, {size / 1e6:,.0f} MB are needed; {FREE_SPACE_ADVICE}"
        )


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn the system's errors about writing below the folder into StorageError."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StorageError(f"the disk of {folder} is full; {FREE_SPACE_ADVICE}") from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StorageError(
                f"{folder} cannot be written ({error.strerror}); change its permissions, or {_OTHER_FOLDER}"
            ) from error
        if not folder.is_dir():
            raise StorageError(f"{folder} cannot be made ({error.strerror}); {_OTHER_FOLDER}") from error
        raise StorageError(f"reading or writing in {folder} failed ({error}); check the disk and try again") from error
