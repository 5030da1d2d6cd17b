"""Calls on threads of their own: the process ends without waiting for them."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def started(function: Callable[[], T], name: str) -> "Future[T]":
    """The call, begun on a new thread; the future gets what it returns or raises, and cannot be cancelled."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # a library may even want to exit
            future.set_exception(error)

    Thread(target=run, name=name, daemon=True).start()
    return future
