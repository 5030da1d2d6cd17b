"""One connection to a daemon."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from select import select
from threading import Lock
from typing import Any

from mercury_lsp.daemon.control import PING, PONG
from mercury_lsp.transport import framing

POLL_SECONDS = 1.25
"""Seconds between two polls of a daemon that owes an answer or has sent nothing since our last message."""

POLLS_BEFORE_PING, POLLS_BEFORE_LOSS = 2, 4
"""Polls without a message before a ping, and before the daemon counts as lost. Sleep of the machine counts as one."""

SEND_SECONDS = 5.0
"""Longest wait for a daemon to read any part of a message; a hanging one lets the socket's buffer fill up."""


class Link:
    """Messages in both directions. The incoming ones end when the daemon is gone or hangs."""

    def __init__(self, connection: socket.socket):
        connection.settimeout(SEND_SECONDS)
        self._connection = connection
        self._sending = Lock()
        self._is_unheard = False
        """Something was sent, and nothing has arrived since."""
        self.was_silent = False
        """The link was closed because the daemon hangs."""
        self._asked: set[Any] = set()
        """Ids of unanswered requests."""
        self.messages: Iterator[Any] = self._messages()
        """The daemon's messages, until it is gone."""

    def send(self, message: Any) -> None:
        """Send one message, or nothing if the daemon is gone."""
        self._is_unheard = True
        if isinstance(message, dict) and "method" in message and isinstance(message.get("id"), int | str):
            self._asked.add(message["id"])
        try:
            with self._sending:
                self._send(framing.framed(message))
        except TimeoutError:
            self.was_silent = True
            self._break()  # half of a message was sent
        except OSError:
            pass

    def hang_up(self) -> None:
        """Stop sending; the daemon closes the connection after its last message."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the connection and wake the threads that wait on it."""
        self._break()
        self._connection.close()

    def _messages(self) -> Iterator[Any]:
        for message in framing.messages(self._read):
            if "method" not in message:
                self._asked.discard(message["id"])
            if message.get("method") != PONG:
                yield message

    def _send(self, data: bytes) -> None:
        """Not sendall: its timeout covers the whole message, and a large document may take longer on a busy machine."""
        left = memoryview(data)
        while left:
            left = left[self._connection.send(left) :]

    def _read(self) -> bytes:
        try:
            if not self._wait_readable():
                self.was_silent = True
                self._break()
                return b""
            data = self._connection.recv(framing.READ_BYTES)
        except (OSError, ValueError):  # ValueError: another thread closed it
            return b""
        self._is_unheard = False
        return data

    def _wait_readable(self) -> bool:
        """Wait for something to read; False if the daemon hangs."""
        polls = 0
        while not select([self._connection], (), (), POLL_SECONDS)[0]:
            polls = polls + 1 if self._is_unheard or self._asked else 0
            if polls == POLLS_BEFORE_PING:
                self._ping()
            elif polls == POLLS_BEFORE_LOSS:
                return False
        return True

    def _ping(self) -> None:
        """Send a ping, unless the daemon's socket is full or something is being sent."""
        if not self._sending.acquire(blocking=False):
            return
        try:
            if select((), [self._connection], (), 0)[1]:
                self._send(framing.framed({"jsonrpc": "2.0", "method": PING}))
        finally:
            self._sending.release()

    def _break(self) -> None:
        """Wake the threads that wait to send or to read."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
