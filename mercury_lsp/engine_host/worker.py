"""The one thread that owns an engine, and whose turn it is.

What is asked at the same time shares the engine's forward passes, up to `AT_ONCE` of them. Whoever asks goes
before whoever looks ahead, and stops what looks ahead. When more ask, the connection that was served longest ago comes
first, so that nobody's typing keeps others waiting for more than a fill each.
"""

import asyncio
import gc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from mercury_engine.api import Answer, Fill, FillRequest, NewRequests, Request, TellOutcome
from mercury_engine.errors import Cancelled

from mercury_lsp.debounce import Debounced
from mercury_lsp.engine_host.serial_executor import SerialExecutor
from mercury_lsp.settings import Settings


class HostedEngine(Protocol):
    """What the server needs of `mercury_engine.engine.Engine`."""

    @property
    def name(self) -> str: ...

    @property
    def device(self) -> str: ...

    @property
    def backend(self) -> str: ...

    @property
    def gate(self) -> float:
        """Least confidence worth showing unasked."""
        ...

    def fill(self, request: FillRequest) -> Fill:
        """Blocking; raises Cancelled once the request's cancel flag is set."""
        ...

    def score(self, request: FillRequest, texts: Sequence[str]) -> list[float]:
        """How likely each text is in the gap, in nats; blocking, and raises as `fill` does."""
        ...

    def answer_all(self, more: NewRequests, done: TellOutcome) -> None:
        """Blocking, until `more` hands over nothing and all are done."""
        ...

    def rest(self) -> None:
        """Nobody asks for a while."""
        ...


AT_ONCE = 4
"""Answers under way: one row more costs a fifth of a pass of its own, but each answer makes the others wait."""

REST_AFTER = 2.0
"""Seconds without a fill after which the engine may rest."""

LoadEngine = Callable[[Settings], HostedEngine]


def load_engine(settings: Settings) -> HostedEngine:
    """The engine that the settings name; takes seconds. Raises ModelError."""
    # What comes now stays: to look through it for garbage again and again is a twelfth of the time.
    gc.disable()
    try:
        from mercury_engine.engine import Engine  # imports torch

        return Engine.load(settings.model, device=settings.device, threads=settings.threads)
    finally:
        gc.enable()


Tell = Callable[[Answer | Exception | None], None]
"""Told of an outcome on the event loop, not a turn of it later: the answer, None without an engine, or the error."""


@dataclass(slots=True, eq=False)
class _Job:
    """What somebody waits for."""

    request: Request
    owner: object
    ahead: bool
    tell: Tell


class Worker:
    """Loads one engine and has it answer off the event loop; to be used from the loop's thread."""

    def __init__(self, load: Callable[[], HostedEngine]):
        self.engine: HostedEngine | None = None
        """None before the first load, while loading and after a failed load."""
        self._load = load
        self._loading: asyncio.Future[HostedEngine] | None = None
        """The newest load; None before the first one and after a failed one."""
        self._begun = False
        """Whether the thread is at the newest load already."""
        self._loads = 0
        self._waiting: list[_Job] = []
        self._running: dict[int, _Job] = {}
        """Handed to the thread and not done, by identity of the request."""
        self._handed: deque[Request] = deque()
        """Those of them that the thread has not taken up yet."""
        self._at_work = False
        """Whether the thread takes up what it is handed."""
        self._resting = Debounced(self._rest)
        self._closed = False
        self._served: WeakKeyDictionary[object, int] = WeakKeyDictionary()
        self._turn = count(1)
        self._thread = SerialExecutor("mercury-engine")

    def load(self, anew: bool = False) -> "asyncio.Future[HostedEngine]":
        """The engine, loaded once for all who ask; fills asked for meanwhile wait. Raises whatever the loading raises.

        `anew`: its files are others now, so that only a load counts that has not begun yet.
        """
        if self._loading is None or (anew and self._begun):
            self._begun = False
            self._loads += 1
            self._loading = asyncio.wrap_future(self._thread.result(self._replace))
            self._loading.add_done_callback(self._loaded)
        return asyncio.shield(self._loading)

    def ask(self, request: Request, owner: object, tell: Tell, ahead: bool = False) -> None:
        """Have the engine answer when it is the owner's turn, and `tell` of it.

        `ahead`: nobody waits for it, so that it is given up for anyone who asks. Whose cancel flag is set stops before
        the next step, and is told Cancelled.
        """
        if self._closed:
            tell(Cancelled("the model is no longer in use"))
            return
        self._give_up([job for job in self._waiting if job.request.cancel.is_set()])
        self._waiting.append(_Job(request, owner, ahead, tell))
        if not ahead:
            for running in self._running.values():
                if running.ahead:
                    running.request.cancel.set()
        self._next()

    def close(self) -> "Future[None]":
        """Let go of the engine and start nothing more; returns at once, the future is done when its memory is free."""
        for running in self._running.values():
            running.request.cancel.set()
        self._resting.cancel()
        self._closed = True
        self._give_up(list(self._waiting))
        self._loading = None  # its result is the engine
        freed = self._thread.result(self._drop)
        self._thread.close()
        return freed

    def _give_up(self, jobs: list[_Job]) -> None:
        """Of those that wait, nobody needs these."""
        for job in jobs:
            self._waiting.remove(job)
            job.tell(Cancelled("given up while waiting for the engine"))

    def _next(self) -> None:
        """Hand over jobs for as long as there is room, and set the thread to work."""
        while self._waiting and not self._loads:
            # min keeps the order of arrival among equals.
            job = min(self._waiting, key=lambda job: (job.ahead, self._served.get(job.owner, 0)))
            if job.request.cancel.is_set():
                self._give_up([job])
                continue
            if len(self._running) >= (1 if job.ahead else AT_ONCE):
                break
            self._waiting.remove(job)
            self._served[job.owner] = next(self._turn)
            self._running[id(job.request)] = job
            self._handed.append(job.request)
        if self._handed and not self._at_work:
            self._at_work = True
            self._thread.call(partial(self._work, asyncio.get_running_loop()))

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """On the thread: all that is handed over, until there is no more."""

        def tell(callback: Callable[..., None], *arguments: Any) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(callback, *arguments)

        def done(request: Request, outcome: Answer | Exception | None) -> None:
            tell(self._done, request, outcome)

        def more() -> Iterator[Request]:
            while self._handed:
                request = self._handed.popleft()
                if request.cancel.is_set():
                    done(request, Cancelled("superseded while waiting for the engine"))
                elif self.engine is None:
                    done(request, None)
                else:
                    yield request

        error: Exception | None = None
        try:
            if self.engine is not None:
                self.engine.answer_all(more, done)
            else:
                deque(more(), maxlen=0)
        except BaseException as raised:  # a library may even want to exit
            error = raised if isinstance(raised, Exception) else RuntimeError(repr(raised))
        tell(self._worked, error)

    def _worked(self, error: Exception | None) -> None:
        self._at_work = False
        if self._closed and self._handed:  # as the thread ended
            error = Cancelled("the model is no longer in use")
        if error is not None:  # not of a request, so nobody was told of it
            self._handed.clear()
            for job in list(self._running.values()):
                self._done(job.request, error)
        self._next()

    def _done(self, request: Request, outcome: Answer | Exception | None) -> None:
        self._running.pop(id(request)).tell(outcome)
        if not self._closed:
            self._resting.put_off(REST_AFTER)
        self._next()

    def _rest(self) -> None:
        if not self._running and not self._closed:
            self._thread.call(self._rest_now)

    def _rest_now(self) -> None:
        if self.engine is not None:
            self.engine.rest()

    def _loaded(self, loading: asyncio.Future[HostedEngine]) -> None:
        self._loads -= 1
        if loading is self._loading and (loading.cancelled() or loading.exception()):
            self._loading = None
        self._next()

    def _replace(self) -> HostedEngine:
        # Let go of the old weights first: two models may not fit into memory.
        self._begun, self.engine = True, None
        self.engine = self._load()
        return self.engine

    def _drop(self) -> None:
        self.engine = None
