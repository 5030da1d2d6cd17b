"""One connection to a daemon."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from mercury_lsp import wire

READ_BYTES = 65536


class Link:
    """Messages out and in; that the other side is gone shows only in that nothing comes in any more."""

    def __init__(self, connection: socket.socket):
        self._connection = connection
        self.messages: Iterator[Any] = wire.messages(self._read)
        """All that the daemon says, until it is gone."""

    def send(self, message: Any) -> None:
        """Send one message, or nothing if the daemon is gone."""
        with suppress(OSError):
            self._connection.sendall(wire.framed(message))

    def hang_up(self) -> None:
        """Say nothing more; the daemon ends the connection once it has said what it still had to."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Say and hear nothing more."""
        self._connection.close()

    def _read(self) -> bytes:
        try:
            return self._connection.recv(READ_BYTES)
        except OSError:
            return b""
