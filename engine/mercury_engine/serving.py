"""The thread on which an engine answers, for callers on event loops."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any

from mercury_engine.api import Answer, Arrived, Control, NewRequests, Request
from mercury_engine.errors import Cancelled

logger = logging.getLogger(__name__)

AnswerAll = Callable[[NewRequests], None]
"""Answers all requests that there are, until there are no more; see `Scheduler.answer_all`."""


class Serving:
    """Takes requests from event loops; those that are there together share forward passes."""

    def __init__(self, answer_all: AnswerAll) -> None:
        self._answer_all = answer_all
        self._requests: deque[Arrived] = deque()
        self._calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        """What the thread does next; None ends it."""
        self._closed = False
        self._thread = Thread(target=self._run, name="mercury-engine", daemon=True)
        self._thread.start()

    async def answer(self, request: Request, control: Control) -> Answer:
        """The answer to a request. Raises what answering raises; when the caller's task is cancelled, it stops."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()

        def tell(outcome: Answer | Exception) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(resolve, future, outcome)

        self._requests.append((request, control, tell))
        self._calls.put(lambda: self._answer_all(self._arrived))
        if self._closed:  # checked last: another thread may have closed it before it saw the request
            control.cancel.set()
            raise Cancelled("the model is no longer in use")
        try:
            return await future
        except asyncio.CancelledError:
            control.cancel.set()
            raise

    def call(self, function: Callable[[], object]) -> None:
        """Have the thread call a function after what it does now; what it raises is logged."""
        self._calls.put(function)

    def close(self) -> None:
        """End the thread, once everything asked so far is answered; answer nothing more."""
        self._closed = True
        self._calls.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (function := self._calls.get()) is not None:
            try:
                function()
            except BaseException:  # a library may even want to exit
                logger.exception("a call on the engine's thread failed")
            del function  # it may hold an engine

    def _arrived(self) -> Iterator[Arrived]:
        while self._requests:
            yield self._requests.popleft()


def resolve(future: "asyncio.Future[Any]", outcome: Any) -> None:
    """Set a future's result, or its exception if the outcome is one; nothing if it is done."""
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
