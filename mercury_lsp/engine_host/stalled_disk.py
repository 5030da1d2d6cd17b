"""Asks the file system about a path that a user named, where a stalled disk can be given up."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TypeVar

from mercury_lsp.errors import SettingsError

T = TypeVar("T")

ANSWER_SECONDS = 5.0
"""For a file system to answer; network file systems take up to a second."""


async def answered(ask: Callable[[], T], about: str) -> T:
    """What a call about a path returns or raises, made on a thread of its own.

    Raises SettingsError if it takes too long; the thread is then left to wait for the disk.
    """
    loop, answer = asyncio.get_running_loop(), asyncio.Future[T]()

    def deliver(result: T | None, error: Exception | None) -> None:
        if not answer.done():
            answer.set_result(result) if error is None else answer.set_exception(error)  # type: ignore[arg-type]

    def run() -> None:
        try:
            outcome: tuple[T | None, Exception | None] = ask(), None
        except Exception as error:
            outcome = None, error
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(deliver, *outcome)

    Thread(target=run, name="mercury-disk", daemon=True).start()
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await answer
    except TimeoutError as error:
        raise SettingsError(f"the disk of {about} does not answer; choose another model") from error
