"""The editor's end of a relay: the standard streams of this process. One thread reads, any thread writes."""

import os
import select
import sys
from contextlib import suppress
from threading import Lock

from mercury_lsp.relay.link import READ_BYTES

MAX_OFFER_BYTES = 512 if sys.platform == "win32" else select.PIPE_BUF
"""Longest message for `Stdio.offer`; a pipe that can be written at all has room for it."""


class Stdio:
    """Bytes from and for the editor."""

    def __init__(self) -> None:
        self._writing = Lock()

    def read(self) -> bytes:
        """The editor's next bytes; empty once the session is over."""
        return os.read(0, READ_BYTES)

    def write(self, data: bytes) -> None:
        """Raises OSError once the editor is gone."""
        with self._writing:
            left = memoryview(data)
            while left:
                left = left[os.write(1, left) :]

    def offer(self, data: bytes) -> None:
        """Write a short message if nothing else is being written and the editor has room for it; else drop it.

        For answers to what cannot be read: a client that sends such frames without reading would stop the thread that
        reads from it.
        """
        assert len(data) <= MAX_OFFER_BYTES
        if not self._writing.acquire(blocking=False):
            return
        try:
            if _has_room():
                with suppress(OSError):  # the editor is gone, which the next read shows
                    os.write(1, data)
        finally:
            self._writing.release()

    def give_up(self, reason: str = "") -> None:
        """End the process; the reason goes to the editor's log. At once, because a read cannot be interrupted."""
        with suppress(OSError):
            os.write(2, reason.encode("utf-8", "backslashreplace"))
        os._exit(1)


def _has_room() -> bool:
    """Whether a short write does not block; Windows cannot tell."""
    if sys.platform == "win32":
        return True
    poll = select.poll()
    poll.register(1, select.POLLOUT)
    return bool(poll.poll(0))
