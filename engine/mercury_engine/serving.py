"""The thread on which an engine answers, for callers on event loops."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from queue import SimpleQueue
from threading import Thread
from typing import Any

from mercury_engine.api import Answer, Control, NewRequests, Request, TellOutcome
from mercury_engine.errors import Cancelled

logger = logging.getLogger(__name__)

AnswerAll = Callable[[NewRequests, TellOutcome], None]
"""Answers all requests that there are, until there are no more; see `Scheduler.answer_all`."""

Deliver = Callable[[Answer | Exception], None]


class Serving:
    """Takes requests from event loops; those that are there together share forward passes."""

    def __init__(self, answer_all: AnswerAll) -> None:
        self._answer_all = answer_all
        self._requests: deque[tuple[Request, Control, Deliver]] = deque()
        self._calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        """What the thread does next; None ends it."""
        self._closed = False
        self._thread = Thread(target=self._run, name="mercury-engine", daemon=True)
        self._thread.start()

    async def answer(self, request: Request, control: Control) -> Answer:
        """The answer to a request. Raises what answering raises; when the caller's task is cancelled, it stops."""
        if self._closed:
            raise Cancelled("the model is no longer in use")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()

        def deliver(outcome: Answer | Exception) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(resolve, future, outcome)

        self._requests.append((replace(request), control, deliver))  # outcomes are told apart by their requests
        self._calls.put(self._work)
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

    def _work(self) -> None:
        """Answer everything that is there, also what arrives meanwhile."""
        running: dict[int, Deliver] = {}

        def more() -> Iterator[tuple[Request, Control]]:
            while self._requests:
                request, control, deliver = self._requests.popleft()
                running[id(request)] = deliver
                yield request, control

        def done(request: Request, outcome: Answer | Exception) -> None:
            running.pop(id(request))(outcome)

        try:
            self._answer_all(more, done)
        except BaseException as raised:  # of no single request, so nobody knows of it yet
            error = raised if isinstance(raised, Exception) else RuntimeError(repr(raised))
            for deliver in [*running.values()]:
                deliver(error)


def resolve(future: "asyncio.Future[Any]", outcome: Any) -> None:
    """Set a future's result, or its exception if the outcome is one; nothing if it is done."""
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
