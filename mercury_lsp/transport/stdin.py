"""Messages that come over a pipe."""

import asyncio
import logging
from collections.abc import AsyncIterator
from threading import Thread
from typing import Any, BinaryIO

from mercury_lsp.transport import framing

logger = logging.getLogger(__name__)

READ_BYTES = 65536

END = object()
"""Stands behind the last message of the client."""


async def messages(stdin: BinaryIO) -> AsyncIterator[Any]:
    """Messages of a pipe, which only a thread of its own can wait for."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[Any]()

    def listen() -> None:
        try:
            for message in framing.messages(lambda: stdin.read1(READ_BYTES)):  # type: ignore[attr-defined]
                loop.call_soon_threadsafe(queue.put_nowait, message)
            loop.call_soon_threadsafe(queue.put_nowait, END)
        except RuntimeError as error:
            logger.debug("the loop has ended before its input: %s", error)

    Thread(target=listen, name="mercury-stdin", daemon=True).start()
    while (message := await queue.get()) is not END:
        yield message
