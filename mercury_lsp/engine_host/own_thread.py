"""Calls on threads of their own: the process does not wait for them, and a stalled disk can be given up."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

from mercury_lsp.errors import SettingsError

T = TypeVar("T")

DISK_SECONDS = 5.0
"""For a file system to answer; network file systems take up to a second."""


def started(function: Callable[[], T], name: str) -> "Future[T]":
    """The call, begun on a new thread; the future gets what it returns or raises, and cannot be cancelled."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(function())
        except Exception as error:
            future.set_exception(error)
        except BaseException as error:  # a library panicked or wants to exit, which must not reach the event loop
            future.set_exception(RuntimeError(repr(error)))

    Thread(target=run, name=name, daemon=True).start()
    return future


async def answered(ask: Callable[[], T], about: str) -> T:
    """The result of a call about a user's path. Raises SettingsError if the disk stalls, and what the call raises."""
    try:
        async with asyncio.timeout(DISK_SECONDS):
            return await asyncio.wrap_future(started(ask, "mercury-disk"))
    except TimeoutError as error:
        raise SettingsError(f"the disk of {about} does not answer; choose another model") from error
