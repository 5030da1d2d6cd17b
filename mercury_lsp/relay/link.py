"""One connection to a daemon."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from select import select
from threading import Lock
from typing import Any

from mercury_lsp.daemon.handshake import PING, PONG
from mercury_lsp.transport import framing

READ_BYTES = 65536

LOOK_SECONDS = 5.0
"""Between two looks at a daemon that owes an answer, or was told something and has said nothing since."""

PING_AFTER, LOST_AFTER = 2, 6
"""Looks until it is asked whether it is alive, and until it is given up. A machine that was asleep has looked once."""

SEND_SECONDS = 10.0
"""For a daemon to take anything at all of a message; one that hangs takes nothing once the socket's buffer is full."""


class Link:
    """Messages out and in; that the other side is gone, or hangs, shows only in that nothing comes in any more."""

    def __init__(self, connection: socket.socket):
        connection.settimeout(SEND_SECONDS)
        self._connection = connection
        self._sending = Lock()
        self._is_told = False
        """Something was sent and nothing came in since."""
        self._asked: set[Any] = set()
        """Ids of requests that were not answered yet."""
        self.messages: Iterator[Any] = self._messages()
        """All that the daemon says, until it is gone."""

    def send(self, message: Any) -> None:
        """Send one message, or nothing if the daemon is gone."""
        self._is_told = True
        if isinstance(message, dict) and "method" in message and isinstance(message.get("id"), int | str):
            self._asked.add(message["id"])
        try:
            with self._sending:
                self._send(framing.framed(message))
        except TimeoutError:
            self._break()  # half a message is on its way
        except OSError:
            pass

    def hang_up(self) -> None:
        """Say nothing more; the daemon ends the connection once it has said what it still had to."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Say and hear nothing more; whoever waits to do so is woken."""
        self._break()
        self._connection.close()

    def _messages(self) -> Iterator[Any]:
        for message in framing.messages(self._read):
            if isinstance(message, dict):
                if message.get("method") == PONG:
                    continue
                if "method" not in message and isinstance(message.get("id"), int | str):
                    self._asked.discard(message["id"])
            yield message

    def _send(self, data: bytes) -> None:
        """Not sendall: its time is that of the whole, and a large document may take longer where much is going on."""
        left = memoryview(data)
        while left:
            left = left[self._connection.send(left) :]

    def _read(self) -> bytes:
        try:
            if not self._comes():
                self._break()
                return b""
            data = self._connection.recv(READ_BYTES)
        except (OSError, ValueError):  # ValueError: it was closed
            return b""
        self._is_told = False
        return data

    def _comes(self) -> bool:
        """Wait until there is something to read; False if the daemon hangs."""
        looks = 0
        while not select([self._connection], (), (), LOOK_SECONDS)[0]:
            looks = looks + 1 if self._is_told or self._asked else 0
            if looks == PING_AFTER:
                self._ping()
            elif looks == LOST_AFTER:
                return False
        return True

    def _ping(self) -> None:
        """Ask for a sign of life, unless the daemon does not even take what it is sent."""
        if not self._sending.acquire(blocking=False):
            return
        try:
            if select((), [self._connection], (), 0)[1]:
                self._send(framing.framed({"jsonrpc": "2.0", "method": PING}))
        finally:
            self._sending.release()

    def _break(self) -> None:
        """Wake whoever still waits to send or to read."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
