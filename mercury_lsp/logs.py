"""Sends the log of our own packages to the client, where users look for it."""

import asyncio
import logging
from collections.abc import Callable

from lsprotocol import types

PACKAGES = ("mercury_lsp", "mercury_engine")

_KINDS = {logging.ERROR: types.MessageType.Error, logging.WARNING: types.MessageType.Warning}


class ClientLog(logging.Handler):
    """Hands warnings and errors to `send` on the event loop's thread, from whatever thread they come."""

    def __init__(self, loop: asyncio.AbstractEventLoop, send: Callable[[types.LogMessageParams], None]):
        super().__init__(logging.WARNING)
        self._loop = loop
        self._send = send

    def attach(self) -> None:
        """Begin to listen."""
        for name in PACKAGES:
            logging.getLogger(name).addHandler(self)

    def detach(self) -> None:
        """Stop listening."""
        for name in PACKAGES:
            logging.getLogger(name).removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record as `window/logMessage`."""
        kind = _KINDS.get(record.levelno, types.MessageType.Info)
        told = types.LogMessageParams(kind, f"{record.name}: {record.getMessage()}")
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._send, told)
