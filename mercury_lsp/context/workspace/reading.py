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
        descriptor = os.open(path, os.O_RDONLY | _NO_WAITING)
        try:
            found = os.fstat(descriptor)
            _require_regular(path, found)
            return _content(path, descriptor, found.st_size, max_bytes)
        finally:
            os.close(descriptor)
    except ValueError:  # a name that no file can have
        return None
    except OSError as error:
        if error.errno in _AS_IF_ABSENT:
            return None
        raise NotRead(path, error.strerror or str(error)) from error


def _require_regular(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise NotRead(path, "it is no regular file")


def _content(path: str, descriptor: int, size: int, max_bytes: int) -> bytes:
    """What is in a file, whose size may be wrong: it may grow, and some systems make files up."""
    content = bytearray()
    while size <= max_bytes and (part := os.read(descriptor, max_bytes + 1 - len(content))):
        content += part
        size = len(content)
    if size > max_bytes:
        raise NotRead(path, f"it has more than {max_bytes:,} bytes")
    return bytes(content)
