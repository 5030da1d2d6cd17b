"""Files of ours that another user must not read, replace or lead elsewhere: locks, logs and statistics.

A lock is a file that the system unlocks when its process ends, for whatever reason.
"""

import errno
import os
import stat
import sys
from pathlib import Path

_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Fail at a symbolic link, and do not wait at a pipe."""

SIGNATURE_OFFSET = 1
"""Offset in bytes of a lock's owner; on Windows no other process can read the locked byte."""

_NO_FILE_OF_YOURS = "{} is a link, or not a file of yours; remove it"


def opened(path: Path, flags: int) -> int:
    """A descriptor of the file, created if missing, which only its owner may read.

    Raises PermissionError for a link, for another user's file and for what is no file, and what `os.open` raises.
    """
    try:
        descriptor = os.open(path, flags | os.O_CREAT | _NO_LINK, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP or path.is_dir():
            raise PermissionError(_NO_FILE_OF_YOURS.format(path)) from error
        raise
    try:
        found = os.fstat(descriptor)
        is_ours = sys.platform == "win32" or found.st_uid == os.getuid()
        if not (stat.S_ISREG(found.st_mode) and is_ours and found.st_nlink <= 1):
            raise PermissionError(_NO_FILE_OF_YOURS.format(path))
        if sys.platform != "win32" and found.st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def state_folder() -> Path:
    """Where statistics and what is known of a GPU are kept, below $XDG_STATE_HOME or the platform's equivalent."""
    from platformdirs import user_state_path  # the relay, which starts in milliseconds, does not need it

    return user_state_path("mercury-lsp", appauthor=False)


def make_folder(folder: Path) -> None:
    """Make a folder if it is missing. Raises OSError, and PermissionError as `check_folder`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_folder(folder)


def check_folder(folder: Path) -> None:
    """Raise PermissionError if another user can replace files of ours in the folder."""
    if sys.platform == "win32":
        return
    found = folder.stat()
    others = stat.S_IWOTH | (0 if found.st_gid == os.getgid() else stat.S_IWGRP)
    if found.st_uid not in (0, os.getuid()):
        raise PermissionError(f"the folder {folder} belongs to another user")
    if found.st_mode & others and not found.st_mode & stat.S_ISVTX:
        raise PermissionError(f"other users can replace files in the folder {folder}")


def take_lock(path: Path, is_private: bool = True) -> int | None:
    """Lock until the returned descriptor is closed or the process ends; None if another holds it. Raises OSError.

    `is_private`: require a folder in which no other user can replace the file.
    """
    if is_private:
        check_folder(path.parent)
    descriptor = opened(path, os.O_RDWR)
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
    if not is_locked(path):
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


def is_locked(path: Path) -> bool:
    """Whether another process holds a lock."""
    if not path.exists():
        return False
    if (descriptor := take_lock(path, is_private=False)) is not None:
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
