"""The one thread that owns an engine, and the order in which it answers.

Up to `MAX_CONCURRENT_ANSWERS` requests share the engine's forward passes. A user's request goes before requests that
look ahead, and stops those that are running. When more requests wait, the connection that was served longest ago comes
first, so nobody waits for more than one fill of each other connection.
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
from typing import Protocol
from weakref import WeakKeyDictionary

from mercury_engine.api import Answer, Fill, FillRequest, NewRequests, Request, TellOutcome
from mercury_engine.errors import Cancelled
from mercury_engine.worth import Worth

from mercury_lsp.debounce import Debounced
from mercury_lsp.engine_host.serial_executor import SerialExecutor
from mercury_lsp.settings import Settings


class HostedEngine(Protocol):
    """What the server uses of `mercury_engine.engine.Engine`."""

    @property
    def name(self) -> str: ...

    @property
    def device(self) -> str: ...

    @property
    def backend(self) -> str: ...

    @property
    def choice(self) -> str: ...

    @property
    def edit_format(self) -> str | None:
        """The format in which the model was trained to rewrite regions; None if it was not."""
        ...

    @property
    def worth(self) -> Worth:
        """When a fill is worth showing while typing."""
        ...

    def fill(self, request: FillRequest) -> Fill:
        """Blocking; raises Cancelled once the request's cancel flag is set."""
        ...

    def score(self, request: FillRequest, texts: Sequence[str]) -> list[float]:
        """How likely each text is in the gap, in nats; blocks and raises as `fill` does."""
        ...

    def answer_all(self, more: NewRequests, done: TellOutcome) -> None:
        """Blocking, until `more` returns nothing and every request is done."""
        ...

    def rest(self) -> None:
        """Give back resources; no request has come for a while."""
        ...


MAX_CONCURRENT_ANSWERS = 4
"""Requests answered at the same time: one more row costs a fifth of a separate pass, but slows the others down."""

IDLE_REST_SECONDS = 2.0
"""Seconds without a request after which the engine may rest."""

LoadEngine = Callable[[Settings], HostedEngine]


def load_engine(settings: Settings) -> HostedEngine:
    """The engine that the settings name; takes seconds. Raises ModelError."""
    # Everything allocated now stays; repeated garbage collection would take a twelfth of the time.
    gc.disable()
    try:
        from mercury_engine.engine import Engine  # takes a while

        return Engine.load(settings.model, device=settings.device, threads=settings.threads)
    finally:
        gc.enable()


OnOutcome = Callable[[Answer | Exception | None], None]
"""Called on the event loop with the answer, None if there is no engine, or the error."""


@dataclass(slots=True, eq=False)
class _Job:
    """A request, and who waits for it."""

    request: Request
    owner: object
    ahead: bool
    on_outcome: OnOutcome


class Worker:
    """Loads one engine and lets it answer on its own thread; to be used from the event loop's thread."""

    def __init__(self, load: Callable[[], HostedEngine]):
        self.engine: HostedEngine | None = None
        """None before the first load, while loading and after a failed load."""
        self._load = load
        self._loading: asyncio.Future[HostedEngine] | None = None
        """The newest load; None before the first one and after a failed one."""
        self._begun = False
        """Whether the thread has begun the newest load."""
        self._loads = 0
        self._waiting: list[_Job] = []
        self._running: dict[int, _Job] = {}
        """Jobs handed to the thread and not done, by identity of the request."""
        self._handed: deque[Request] = deque()
        """Their requests that the thread has not taken yet."""
        self._at_work = False
        """Whether the thread is taking requests."""
        self._resting = Debounced(self._rest)
        self._closed = False
        self._served: WeakKeyDictionary[object, int] = WeakKeyDictionary()
        self._turn = count(1)
        self._thread = SerialExecutor("mercury-engine")

    def load(self, reload: bool = False) -> "asyncio.Future[HostedEngine]":
        """The engine, loaded once for all callers; requests wait meanwhile. Raises what loading it raises.

        `reload`: its files have changed, so a load that has already begun does not count.
        """
        if self._loading is None or (reload and self._begun):
            self._begun = False
            self._loads += 1
            self._loading = asyncio.wrap_future(self._thread.result(self._replace))
            self._loading.add_done_callback(self._loaded)
        return asyncio.shield(self._loading)

    def ask(self, request: Request, owner: object, on_outcome: OnOutcome, ahead: bool = False) -> None:
        """Have the engine answer when it is the owner's turn, then call `on_outcome`.

        `ahead`: no user waits for it, so any request of a user stops it. A request whose cancel flag is set stops
        before its next step; its outcome is Cancelled.
        """
        if self._closed:
            on_outcome(Cancelled("the model is no longer in use"))
            return
        self._give_up([job for job in self._waiting if job.request.cancel.is_set()])
        self._waiting.append(_Job(request, owner, ahead, on_outcome))
        if not ahead:
            for running in self._running.values():
                if running.ahead:
                    running.request.cancel.set()
        self._next()

    def close(self) -> "Future[None]":
        """Release the engine and start nothing more; returns at once. The future is done when the memory is free."""
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
        """Drop waiting jobs that nobody needs any more."""
        for job in jobs:
            self._waiting.remove(job)
            job.on_outcome(Cancelled("given up while waiting for the engine"))

    def _next(self) -> None:
        """Hand over jobs while there is room, and start the thread's work."""
        while self._waiting and not self._loads:
            # min keeps the order of arrival among equals.
            job = min(self._waiting, key=lambda job: (job.ahead, self._served.get(job.owner, 0)))
            if job.request.cancel.is_set():
                self._give_up([job])
                continue
            if len(self._running) >= (1 if job.ahead else MAX_CONCURRENT_ANSWERS):
                break
            self._waiting.remove(job)
            self._served[job.owner] = next(self._turn)
            self._running[id(job.request)] = job
            self._handed.append(job.request)
        if self._handed and not self._at_work:
            self._at_work = True
            self._thread.call(partial(self._work, asyncio.get_running_loop()))

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """On the engine's thread: answer everything that is handed over, until there is no more."""

        def on_loop(callback: Callable[[], None]) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(callback)

        def done(request: Request, outcome: Answer | Exception | None) -> None:
            on_loop(partial(self._done, request, outcome))

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
        on_loop(partial(self._worked, error))

    def _worked(self, error: Exception | None) -> None:
        self._at_work = False
        if self._closed and self._handed:  # as the thread ended
            error = Cancelled("the model is no longer in use")
        if error is not None:  # of no single request, so nobody knows of it yet
            self._handed.clear()
            for job in list(self._running.values()):
                self._done(job.request, error)
        self._next()

    def _done(self, request: Request, outcome: Answer | Exception | None) -> None:
        self._running.pop(id(request)).on_outcome(outcome)
        if not self._closed:
            self._resting.postpone(IDLE_REST_SECONDS)
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
        # Release the old weights first: two models may not fit into memory.
        self._begun, self.engine = True, None
        try:
            self.engine = self._load()
        except Exception:
            raise
        except BaseException as error:  # a library panicked, or wants to exit; the event loop must not see that
            raise RuntimeError(repr(error)) from error
        return self.engine

    def _drop(self) -> None:
        self.engine = None
