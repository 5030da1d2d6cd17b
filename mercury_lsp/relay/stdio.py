"""The editor's end of a relay: the standard streams of this process. One thread reads, any thread writes."""

import os
from contextlib import suppress
from threading import Lock

from mercury_lsp.relay.link import READ_BYTES


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

    def give_up(self, reason: str = "") -> None:
        """End the process; the reason goes to the editor's log. At once, because a read cannot be interrupted."""
        with suppress(OSError):
            os.write(2, reason.encode("utf-8", "backslashreplace"))
        os._exit(1)
