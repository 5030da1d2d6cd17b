"""Sends our packages' warnings to the client's log, where users look for them."""

import asyncio
import logging
import traceback
from collections.abc import Callable
from contextvars import ContextVar

from lsprotocol.types import MessageType

LOGGED_PACKAGES = ("mercury_lsp", "mercury_engine", "mercury_kernels")

_MESSAGE_TYPES = {logging.ERROR: MessageType.Error, logging.WARNING: MessageType.Warning}

handling_server: ContextVar[object] = ContextVar("handling_server", default=None)
"""The server whose messages are being handled; None outside of one, as on an engine's thread."""


class ClientLog(logging.Handler):
    """Passes warnings and errors from any thread to `log` on the event loop's thread; not those of other clients."""

    def __init__(self, loop: asyncio.AbstractEventLoop, log: Callable[[str, MessageType], None], owner: object):
        super().__init__(logging.WARNING)
        self._loop, self._log, self._owner = loop, log, owner
        for name in LOGGED_PACKAGES:
            logging.getLogger(name).addHandler(self)

    def close(self) -> None:
        """Stop listening."""
        for name in LOGGED_PACKAGES:
            logging.getLogger(name).removeHandler(self)
        super().close()

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record."""
        if handling_server.get() in (None, self._owner) and not self._loop.is_closed():
            kind = _MESSAGE_TYPES.get(record.levelno, MessageType.Info)
            self._loop.call_soon_threadsafe(self._log, f"{record.name}: {record.getMessage()}", kind)


class RedactingFormatter(logging.Formatter):
    """For logs on disk, which must not contain users' code: messages without their values."""

    def format(self, record: logging.LogRecord) -> str:
        """The message's template, and an exception's type and traceback."""
        line = f"{self.formatTime(record)} {record.levelname} {record.name}: {record.msg}"
        if record.exc_info and (error := record.exc_info[1]):
            line += f"\n{type(error).__name__}\n" + "".join(traceback.format_tb(error.__traceback__)).rstrip()
        return line
