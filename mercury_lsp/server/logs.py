"""Sends the log of our own packages to the client, where users look for it."""

import asyncio
import logging
import traceback
from collections.abc import Callable
from contextvars import ContextVar

from lsprotocol import types

LOGGED_PACKAGES = ("mercury_lsp", "mercury_engine", "mercury_kernels")

_MESSAGE_TYPES = {logging.ERROR: types.MessageType.Error, logging.WARNING: types.MessageType.Warning}


spoken_for: ContextVar[object] = ContextVar("spoken_for", default=None)
"""Whose messages are being handled; None where it is nobody's in particular, as on an engine's thread."""


class ClientLog(logging.Handler):
    """Hands warnings and errors to `send` on the event loop's thread, from whatever thread they come.

    What was logged on behalf of another connection than `owner` is not for this client to read.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, send: Callable[[types.LogMessageParams], None], owner: object):
        super().__init__(logging.WARNING)
        self._loop = loop
        self._send = send
        self._owner = owner

    def attach(self) -> None:
        """Begin to listen."""
        for name in LOGGED_PACKAGES:
            logging.getLogger(name).addHandler(self)

    def detach(self) -> None:
        """Stop listening."""
        for name in LOGGED_PACKAGES:
            logging.getLogger(name).removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record as `window/logMessage`."""
        if spoken_for.get() not in (None, self._owner):
            return
        kind = _MESSAGE_TYPES.get(record.levelno, types.MessageType.Info)
        told = types.LogMessageParams(kind, f"{record.name}: {record.getMessage()}")
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._send, told)


class RedactingFormatter(logging.Formatter):
    """For logs on disk, which must hold nobody's code: what happened and where, without the values."""

    def format(self, record: logging.LogRecord) -> str:
        """The message's template, and of an exception its type and the lines it went through."""
        line = f"{self.formatTime(record)} {record.levelname} {record.name}: {record.msg}"
        if record.exc_info and (error := record.exc_info[1]):
            line += f"\n{type(error).__name__}\n" + "".join(traceback.format_tb(error.__traceback__)).rstrip()
        return line
