"""Reads files that a repository controls: regular ones only, never waiting for one, and none beyond a limit."""

import errno
import os
import stat

MAX_RULES_BYTES = 1_000_000
"""Largest file of settings or ignore rules that is read."""

_NO_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)

_AS_IF_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EACCES, errno.EPERM)


class NotRead(Exception):
    """A file is there and is not read; the text says why."""

    def __init__(self, path: str, reason: str):
        super().__init__(f"{path} is not read: {reason}")


def read(path: str, max_bytes: int) -> bytes | None:
    """A file's content; None without a file of that name that we may read. Links are followed.

    Raises NotRead for a pipe, device, socket or folder, for a file of more bytes, and where reading fails.
    """
    try:
        _require_regular(path, os.stat(path))  # first, because opening a device may already do something
        with open(os.open(path, os.O_RDONLY | _NO_WAITING), "rb") as file:
            _require_regular(path, os.fstat(file.fileno()))
            content = file.read(max_bytes + 1)  # sizes may be wrong: files grow, and some systems make files up
    except ValueError:  # a name that no file can have
        return None
    except OSError as error:
        if error.errno in _AS_IF_ABSENT:
            return None
        raise NotRead(path, error.strerror or str(error)) from error
    if len(content) > max_bytes:
        raise NotRead(path, f"it has more than {max_bytes:,} bytes")
    return content


def _require_regular(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise NotRead(path, "it is no regular file")
