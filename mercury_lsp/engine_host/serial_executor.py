"""A thread of its own for what must not be done by two at once."""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")


class SerialExecutor:
    """Makes calls one after another. An executor makes a future for each, at five times the cost of the queue."""

    def __init__(self, name: str):
        self._calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        """None is the last."""
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._is_started = self._is_closed = False

    def call(self, function: Callable[[], object]) -> None:
        """Once what was given before is done; what it raises is logged. Raises RuntimeError after `close`."""
        if self._is_closed:
            raise RuntimeError(f"the thread {self._thread.name} takes no more calls")
        if not self._is_started:
            self._is_started = True
            self._thread.start()
        self._calls.put(function)

    def result(self, function: Callable[[], T]) -> "Future[T]":
        """The same for what the call returns or raises."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

        self.call(run)
        return future

    def close(self) -> None:
        """End behind what was given so far; returns at once."""
        self._is_closed = True
        self._calls.put(None)

    def _run(self) -> None:
        while (function := self._calls.get()) is not None:
            try:
                function()
            except BaseException:  # a library may even want to exit
                logger.exception("a call on the thread %s failed", self._thread.name)
            del function  # it may hold an engine
