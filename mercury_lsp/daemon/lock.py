"""A file lock that the system gives back when its process ends, however it ends."""

import os
import sys
from pathlib import Path


def take(path: Path) -> int | None:
    """Take the lock until what this returns is closed, or the process ends; None if another has it. Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(descriptor)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def is_taken(path: Path) -> bool:
    """Whether another process has it."""
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
