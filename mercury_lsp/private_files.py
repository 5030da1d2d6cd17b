"""Files of ours that another user must not read, replace or lead elsewhere: locks, logs and statistics."""

import errno
import os
import stat
import sys
from pathlib import Path

_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Fail at a symbolic link, and do not wait at a pipe."""

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
        _require_own(found, path)
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


def _require_own(found: os.stat_result, path: Path) -> None:
    is_ours = sys.platform == "win32" or found.st_uid == os.getuid()
    if not (stat.S_ISREG(found.st_mode) and is_ours and found.st_nlink <= 1):
        raise PermissionError(_NO_FILE_OF_YOURS.format(path))


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
