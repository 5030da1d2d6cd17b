"""The one thread that owns an engine, and whose turn it is.

Whoever asks goes before whoever looks ahead, and stops what looks ahead. Among those who ask, the connection that
was served longest ago comes first, so that nobody's typing keeps others waiting for more than a fill each.
"""

import asyncio
import gc
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from mercury_engine.errors import Cancelled
from mercury_engine.requests import Fill, FillRequest

from mercury_lsp.settings import Settings


class Engine(Protocol):
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

    def compare(self, request: FillRequest, texts: Sequence[str]) -> list[float]:
        """How likely each text is in the gap, in nats; blocking, and raises as `fill` does."""
        ...

    def rest(self) -> None:
        """Nobody asks for a while."""
        ...


REST_AFTER = 2.0
"""Seconds without a fill after which the engine may rest."""

LoadEngine = Callable[[Settings], Engine]


def load_engine(settings: Settings) -> Engine:
    """The engine that the settings name; takes seconds. Raises ModelError."""
    # What comes now stays: to look through it for garbage again and again is a twelfth of the time.
    gc.disable()
    try:
        from mercury_engine.engine import Engine  # imports torch

        return Engine.load(settings.model, device=settings.device, threads=settings.threads)
    finally:
        gc.enable()


@dataclass(slots=True, eq=False)
class _Job:
    """A fill that somebody waits for, or a comparison."""

    request: FillRequest
    owner: object
    ahead: bool
    done: asyncio.Future[Any]
    texts: Sequence[str] = ()
    """To be compared in the gap instead of filling it."""


class Worker:
    """Loads one engine and runs fills, one at a time, off the event loop; to be used from the loop's thread."""

    def __init__(self, load: Callable[[], Engine]):
        self.engine: Engine | None = None
        """None before the first load, while loading and after a failed load."""
        self._load = load
        self._loading: asyncio.Future[Engine] | None = None
        """The newest load; None before the first one and after a failed one."""
        self._begun = False
        """Whether the thread is at the newest load already."""
        self._loads = 0
        self._waiting: list[_Job] = []
        self._running: _Job | None = None
        self._resting: asyncio.TimerHandle | None = None
        self._closed = False
        self._served: WeakKeyDictionary[object, int] = WeakKeyDictionary()
        self._turn = count(1)
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mercury-engine")

    async def load(self, anew: bool = False) -> Engine:
        """The engine, loaded once for all who ask; fills asked for meanwhile wait. Raises whatever the loading raises.

        `anew`: its files are others now, so that only a load counts that has not begun yet.
        """
        if self._loading is None or (anew and self._begun):
            self._begun = False
            self._loads += 1
            self._loading = asyncio.get_running_loop().run_in_executor(self._executor, self._replace)
            self._loading.add_done_callback(self._loaded)
        return await asyncio.shield(self._loading)

    async def fill(self, request: FillRequest, owner: object, ahead: bool = False) -> Fill | None:
        """The engine's answer when it is the owner's turn; None when there is no engine.

        `ahead`: nobody waits for it, so that it is given up for anyone who asks. Raises Cancelled. When the caller's
        task is cancelled the fill stops before its next step.
        """
        found: Fill | None = await self._done(_Job(request, owner, ahead, asyncio.get_running_loop().create_future()))
        return found

    async def compare(self, request: FillRequest, texts: Sequence[str], owner: object) -> list[float] | None:
        """How likely the engine finds each text in the gap; waits, ends and raises as `fill` does."""
        job = _Job(request, owner, False, asyncio.get_running_loop().create_future(), texts)
        found: list[float] | None = await self._done(job)
        return found

    async def _done(self, job: _Job) -> Any:
        """What comes of a job when it is its owner's turn."""
        self._waiting.append(job)
        if self._running is not None and self._running.ahead and not job.ahead:
            self._running.request.cancel.set()
        self._next()
        try:
            return await job.done
        except asyncio.CancelledError:
            job.request.cancel.set()
            raise
        finally:
            if job in self._waiting:
                self._waiting.remove(job)

    def close(self) -> "Future[None]":
        """Let go of the engine and start nothing more; returns at once, the future is done when its memory is free."""
        if self._running is not None:
            self._running.request.cancel.set()
        if self._resting is not None:
            self._resting.cancel()
        self._closed = True
        self._loading = None  # its result is the engine
        freed = self._executor.submit(self._drop)
        self._executor.shutdown(wait=False)
        return freed

    def _next(self) -> None:
        """Hand the next job to the thread, if it is free."""
        if self._running is not None or self._loads or not self._waiting:
            return
        # min keeps the order of arrival among equals.
        job = min(self._waiting, key=lambda job: (job.ahead, self._served.get(job.owner, 0)))
        self._waiting.remove(job)
        self._served[job.owner] = next(self._turn)
        self._running = job
        filling = asyncio.get_running_loop().run_in_executor(self._executor, self._run, job)
        filling.add_done_callback(partial(self._filled, job))

    def _filled(self, job: _Job, filling: asyncio.Future[Any]) -> None:
        self._running = None
        if filling.cancelled():
            job.done.cancel()
        elif error := filling.exception():
            if not job.done.done():
                job.done.set_exception(error)
        elif not job.done.done():
            job.done.set_result(filling.result())
        self._rest_later()
        self._next()

    def _rest_later(self) -> None:
        """Let the engine rest unless another fill ends before."""
        if self._closed:
            return
        if self._resting is not None:
            self._resting.cancel()
        self._resting = asyncio.get_running_loop().call_later(REST_AFTER, self._rest)

    def _rest(self) -> None:
        if self._running is None and self.engine is not None:
            self._executor.submit(self.engine.rest)

    def _loaded(self, loading: asyncio.Future[Engine]) -> None:
        self._loads -= 1
        if loading is self._loading and (loading.cancelled() or loading.exception()):
            self._loading = None
        self._next()

    def _replace(self) -> Engine:
        # Let go of the old weights first: two models may not fit into memory.
        self._begun, self.engine = True, None
        self.engine = self._load()
        return self.engine

    def _run(self, job: _Job) -> Fill | list[float] | None:
        if job.request.cancel.is_set():
            raise Cancelled("superseded while waiting for the engine")
        if self.engine is None:
            return None
        return self.engine.compare(job.request, job.texts) if job.texts else self.engine.fill(job.request)

    def _drop(self) -> None:
        self.engine = None
