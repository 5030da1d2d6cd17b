"""A file lock that the system releases when its process ends, for whatever reason.

The file is written, so it must be ours, not a link, and in a folder in which no other user can replace it.
"""

import os
import sys
from pathlib import Path

from mercury_lsp import private_files

SIGNATURE_OFFSET = 1
"""Offset in bytes of the owner's process id; on Windows no other process can read the locked byte."""


def take(path: Path, is_private: bool = True) -> int | None:
    """Lock until the returned descriptor is closed or the process ends; None if another holds it. Raises OSError.

    `is_private`: require a folder in which no other user can replace the file.
    """
    if is_private:
        private_files.check_folder(path.parent)
    descriptor = private_files.opened(path, os.O_RDWR)
    try:
        _lock(descriptor)
    except OSError:
        os.close(descriptor)
        return None
    try:
        os.ftruncate(descriptor, 0)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def sign(descriptor: int, note: str = "") -> None:
    """Write our process id and a note into the locked file. Raises OSError."""
    os.lseek(descriptor, SIGNATURE_OFFSET, os.SEEK_SET)
    os.write(descriptor, f"{os.getpid()} {note}".rstrip().encode() + b"\n")


def signature(path: Path) -> tuple[int | None, str]:
    """The process that holds the lock, if it has signed, and its note. Raises OSError."""
    if not is_taken(path):
        return None, ""
    with path.open("rb") as file:
        file.seek(SIGNATURE_OFFSET)
        process, _, note = file.read(64).decode("ascii", "replace").strip().partition(" ")
    return (int(process), note) if process.isdecimal() else (None, "")


def is_current(descriptor: int, path: Path) -> bool:
    """Whether our lock is still the file at the path; another process may have removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def is_taken(path: Path) -> bool:
    """Whether another process holds the lock."""
    if not path.exists():
        return False
    if (descriptor := take(path, is_private=False)) is not None:
        os.close(descriptor)
    return descriptor is None


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
