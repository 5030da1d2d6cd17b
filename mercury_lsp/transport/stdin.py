"""Reads messages from a pipe."""

import asyncio
import logging
from collections.abc import AsyncIterator
from threading import Thread
from typing import Any, BinaryIO

from mercury_lsp.transport import framing

logger = logging.getLogger(__name__)

READ_BYTES = 65536

END_OF_INPUT = object()
"""Follows the client's last message."""


async def messages(stdin: BinaryIO) -> AsyncIterator[Any]:
    """Messages of a pipe; a separate thread waits for them."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[Any]()

    def listen() -> None:
        try:
            for message in framing.messages(lambda: stdin.read1(READ_BYTES)):  # type: ignore[attr-defined]
                loop.call_soon_threadsafe(queue.put_nowait, message)
            loop.call_soon_threadsafe(queue.put_nowait, END_OF_INPUT)
        except RuntimeError as error:
            logger.debug("the event loop ended before its input: %s", error)

    Thread(target=listen, name="mercury-stdin", daemon=True).start()
    while (message := await queue.get()) is not END_OF_INPUT:
        yield message
