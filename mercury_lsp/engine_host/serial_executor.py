"""A thread for work that must never run concurrently."""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

from mercury_lsp import interpreter_lock

logger = logging.getLogger(__name__)

T = TypeVar("T")


class SerialExecutor:
    """Runs calls one after another. The standard executor makes a future for each, which costs five times as much."""

    def __init__(self, name: str):
        self._calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        """None ends the thread."""
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._is_started = self._is_closed = False

    def call(self, function: Callable[[], object]) -> None:
        """Run the function after all earlier ones; what it raises is logged. Raises RuntimeError after `close`."""
        if self._is_closed:
            raise RuntimeError(f"the thread {self._thread.name} takes no more calls")
        if not self._is_started:
            self._is_started = True
            interpreter_lock.share()
            self._thread.start()
        self._calls.put(function)

    def result(self, function: Callable[[], T]) -> "Future[T]":
        """Run the function likewise; the future gets what it returns or raises."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

        self.call(run)
        return future

    def close(self) -> None:
        """End the thread after the calls so far; returns at once."""
        self._is_closed = True
        self._calls.put(None)

    def _run(self) -> None:
        while (function := self._calls.get()) is not None:
            try:
                function()
            except BaseException:  # a library may even want to exit
                logger.exception("a call on the thread %s failed", self._thread.name)
            del function  # it may hold an engine
