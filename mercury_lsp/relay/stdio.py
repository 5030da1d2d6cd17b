"""The editor's end of a relay: standard input, output and error, our own or handed over by another process."""

import os
import select
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock
from types import TracebackType
from typing import Any, Protocol, Self

from mercury_lsp.relay.journal import Journal
from mercury_lsp.relay.link import READ_BYTES

MAX_OFFER_BYTES = 512 if sys.platform == "win32" else select.PIPE_BUF
"""Longest message for `Stdio.offer`; a pipe that can be written at all has room for it."""


class Stdio(Protocol):
    """Standard streams; one thread reads, any thread writes."""

    def read(self) -> bytes:
        """The editor's next bytes; empty once the session is over."""

    def write(self, data: bytes) -> None:
        """Raises OSError or ValueError once the editor is gone."""

    def offer(self, data: bytes) -> None:
        """Write a short message if the editor has room for it at once; else drop it.

        For answers to what cannot be read: a client that sends such frames without reading would stop the thread that
        reads from it.
        """

    def give_up(self, reason: str = "") -> None:
        """End the server; the reason goes to the editor's log."""

    def keep(self, state: Callable[[], Any]) -> None:
        """Nothing that was read is left to be handled: keep the session's state in place of what was said, if long."""

    def finish(self, data: bytes) -> None:
        """Write the rest of what was noted and not written. Raises OSError."""


class OwnStdio:
    """The streams of this process, which serves no other editor."""

    def __init__(self) -> None:
        self._writing = Lock()

    def keep(self, state: Callable[[], Any]) -> None:
        """As `Stdio`: there is no journal."""

    def finish(self, data: bytes) -> None:
        """As `Stdio`."""
        self.write(data)

    def read(self) -> bytes:
        """As `Stdio`."""
        return os.read(0, READ_BYTES)

    def write(self, data: bytes) -> None:
        """As `Stdio`."""
        with self._writing:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def offer(self, data: bytes) -> None:
        """As `Stdio`."""
        _offer(self._writing, 1, data)

    def give_up(self, reason: str = "") -> None:
        """As `Stdio`: at once, because a read cannot be interrupted."""
        sys.stderr.write(reason)
        sys.stderr.flush()
        os._exit(1)


class HandedStdio:
    """The streams of a process that only waits to exit; a context manager that closes the descriptors.

    No thread waits for the editor after the waiter is gone.
    """

    def __init__(self, descriptors: Sequence[int], waiter: socket.socket, journal: Journal | None = None):
        self._in, self._out, self._errors = descriptors
        self._waiter = waiter
        self._journal = journal
        self._writing = Lock()
        self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.give_up("".join(traceback.format_exception(error)) if error is not None else "")
        with self._writing:
            for each in {self._in, self._out, self._errors}:
                os.close(each)
            if self._journal is not None:
                self._journal.close()

    def read(self) -> bytes:
        """As `Stdio`."""
        if not self._is_ready(self._in, select.POLLIN):
            return b""
        return os.read(self._in, READ_BYTES) if self._journal is None else self._journal.take(self._in)

    def keep(self, state: Callable[[], Any]) -> None:
        """As `Stdio`; later if something is being written."""
        if self._journal is None or not self._journal.is_long or not self._writing.acquire(blocking=False):
            return
        try:
            self._journal.replace(state())
        finally:
            self._writing.release()

    def write(self, data: bytes) -> None:
        """As `Stdio`, in pieces that never block once there is room."""
        with self._writing:
            if self._journal is not None:
                self._journal.note_output(data)
            self._write(data)

    def finish(self, data: bytes) -> None:
        """As `Stdio`."""
        if data:
            self.write(data)  # noted once more: if we are killed now, the rest of this record counts

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            if self._is_over or not self._is_ready(self._out, select.POLLOUT):
                raise BrokenPipeError("the editor's server has ended")
            if self._journal is not None:
                left = left[self._journal.send(self._out, min(len(left), select.PIPE_BUF)) :]
            else:
                left = left[os.write(self._out, left[: select.PIPE_BUF]) :]

    def offer(self, data: bytes) -> None:
        """As `Stdio`."""
        if not self._is_over:
            _offer(self._writing, self._out, data)

    def give_up(self, reason: str = "") -> None:
        """As `Stdio`: wakes the threads that wait for the editor; the waiter can still be sent its exit code."""
        if self._is_over:
            return
        self._is_over = True
        with suppress(OSError):  # it is gone
            self._waiter.shutdown(socket.SHUT_RD)
        with self._writing:
            self._complain(reason.encode()[-select.PIPE_BUF :])

    def _complain(self, reason: bytes) -> None:
        """Write the reason, if that does not block."""
        if reason and _has_room(self._errors):
            with suppress(OSError):
                os.write(self._errors, reason)

    def _is_ready(self, descriptor: int, event: int) -> bool:
        """Wait until the descriptor can be read or written; False if the session ends first."""
        poll = select.poll()
        poll.register(descriptor, event)
        poll.register(self._waiter, select.POLLIN)
        while True:
            found = {ready for ready, _ in poll.poll()}
            if self._waiter.fileno() in found and self._is_left():
                return False
            if descriptor in found:
                return True

    def _is_left(self) -> bool:
        """Whether the waiter is gone or given up; anything it sends is discarded."""
        try:
            return not self._waiter.recv(READ_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:  # another thread took it
            return False
        except OSError:
            return True


def _offer(writing: Lock, descriptor: int, data: bytes) -> None:
    """Write if nothing else is being written and there is room for all of it."""
    assert len(data) <= MAX_OFFER_BYTES
    if not writing.acquire(blocking=False):
        return
    try:
        if _has_room(descriptor):
            with suppress(OSError):  # the editor is gone, which the next read shows
                os.write(descriptor, data)
    finally:
        writing.release()


def _has_room(descriptor: int) -> bool:
    """Whether a short write does not block; Windows cannot tell."""
    if sys.platform == "win32":
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(0))
