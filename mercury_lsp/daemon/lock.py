"""A file lock that the system releases when its process ends, however it ends."""

import os
import sys
from pathlib import Path

SIGNATURE_OFFSET = 1
"""Offset in bytes of the owner's process id; on Windows no other process can read the locked byte."""


def take(path: Path) -> int | None:
    """Lock until the returned descriptor is closed or the process ends; None if another holds it. Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(descriptor)
    except OSError:
        os.close(descriptor)
        return None
    os.ftruncate(descriptor, 0)
    return descriptor


def sign(descriptor: int) -> None:
    """Write our process id into the locked file. Raises OSError."""
    os.lseek(descriptor, SIGNATURE_OFFSET, os.SEEK_SET)
    os.write(descriptor, f"{os.getpid()}\n".encode())


def owner(path: Path) -> int | None:
    """The process that holds the lock; None if none does, or it has not signed. Raises OSError."""
    if not is_taken(path):
        return None
    with path.open("rb") as file:
        file.seek(SIGNATURE_OFFSET)
        signed = file.read(32).strip()
    return int(signed) if signed.isdigit() else None


def is_taken(path: Path) -> bool:
    """Whether another process holds the lock."""
    if not path.exists():
        return False
    if (descriptor := take(path)) is not None:
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
