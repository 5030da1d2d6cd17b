"""Asks the file system about a path that a user named, where a stalled disk can be given up."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from mercury_lsp.engine_host.own_thread import started
from mercury_lsp.errors import SettingsError

T = TypeVar("T")

ANSWER_SECONDS = 5.0
"""For a file system to answer; network file systems take up to a second."""


async def answered(ask: Callable[[], T], about: str) -> T:
    """What a call about a path returns or raises.

    Raises SettingsError if it takes too long; its thread is then left to wait for the disk.
    """
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await asyncio.wrap_future(started(ask, "mercury-disk"))
    except TimeoutError as error:
        raise SettingsError(f"the disk of {about} does not answer; choose another model") from error
