"""Loads the engine of some settings, and decides the order in which it answers.

Up to `MAX_CONCURRENT_ANSWERS` requests share forward passes. A user's request precedes requests that look ahead, and
stops running ones. Of the others the connection served longest ago comes first, so nobody waits for more than one fill
of each other connection.
"""

import asyncio
import gc
import logging
import sys
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from threading import Event
from time import monotonic
from weakref import WeakKeyDictionary

from mercury_engine.api import Answer, Control, InferenceEngine, Request
from mercury_engine.errors import Cancelled, MercuryError

from mercury_lsp.debounce import Debounced
from mercury_lsp.engine_host import gpu_proof
from mercury_lsp.engine_host.own_thread import started
from mercury_lsp.errors import is_short_of_memory
from mercury_lsp.settings import Settings, is_url

logger = logging.getLogger(__name__)

MAX_CONCURRENT_ANSWERS = 4
"""Concurrent requests: one more row costs a fifth of a separate pass, but slows the others down."""

SWITCH_SECONDS = 0.0005
"""Python's switch interval, shorter than a slice of long work on the event loop. The loop releases the interpreter lock
between slices and takes it back before the engine's thread wakes up, whose wait starts over: with Python's 5 ms and
slices of 1.2 ms a call waited 0.3 to 1 s."""

GARBAGE_OBJECTS = 10_000
"""New objects after which garbage is collected, for 0.2 ms: once in some 100 keys, with Python's 700 in every tenth."""

IDLE_REST_SECONDS = 2.0
"""Without a request, after which the engine may rest."""

LoadEngine = Callable[[Settings], InferenceEngine]


def load_engine(settings: Settings) -> InferenceEngine:
    """The engine that the settings name; takes seconds. Raises ModelError."""
    if settings.model is not None and is_url(settings.model):
        from mercury_lsp.engine_host.remote.editing import RemoteEdits  # as below

        return RemoteEdits(settings.model, settings.edit_requests_per_minute)
    if settings.engine is not None:
        from mercury_lsp.engine_host.remote.engine import RemoteEngine  # what speaks HTTP takes a while

        return RemoteEngine(settings.engine, partial(load_engine, replace(settings, engine=None)))
    # Everything allocated now stays: collecting it would take a twelfth of the load, and 0.1 s in every pause.
    gc.disable()
    gc.set_threshold(GARBAGE_OBJECTS)
    try:
        from mercury_engine.engine import Engine  # takes a while

        return Engine.load(settings.model, device=gpu_proof.device_for(settings), threads=settings.threads)
    finally:
        gc.freeze()
        gc.enable()


def why_not_loaded(error: Exception) -> str:
    """Why loading failed, for users; unexpected errors are logged, too."""
    if isinstance(error, MercuryError):
        return str(error)
    if is_short_of_memory(error):
        return "there is not enough memory for the model; raise its limit (ulimit -v) or choose a smaller one"
    logger.error("loading failed", exc_info=error)
    return f"{type(error).__name__}: {error}; run mercury-lsp doctor"


OnOutcome = Callable[[Answer | Exception | None], None]
"""Called on the event loop with the answer, None if there is no engine, or the error."""


@dataclass(slots=True, eq=False)
class _Job:
    """A request, and who waits for it."""

    request: Request
    control: Control
    owner: object
    ahead: bool
    on_outcome: OnOutcome

    @property
    def is_given_up(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.control.cancel.is_set()


class Worker:
    """Loads an engine on a thread of its own and passes requests to it; for the event loop's thread."""

    def __init__(self, load: Callable[[], InferenceEngine]):
        self.engine: InferenceEngine | None = None
        """None before the first load, while loading and after a failed load."""
        self._load = load
        self._loading: asyncio.Future[InferenceEngine] | None = None
        """The load; None before it and after a failed one."""
        self._is_loading = False
        self._load_ended = Event()
        self._load_ended.set()
        self._waiting: list[_Job] = []
        self._running: dict[_Job, asyncio.Task[None]] = {}
        self._resting = Debounced(self._rest)
        self._closed = False
        self._served: WeakKeyDictionary[object, int] = WeakKeyDictionary()
        self._turn = count(1)
        self._asked: WeakKeyDictionary[object, float] = WeakKeyDictionary()
        """When each owner's user last asked."""

    def load(self) -> "asyncio.Future[InferenceEngine]":
        """The engine, loaded once for all callers; requests wait meanwhile. Raises what loading it raises."""
        if self._loading is None:
            sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_SECONDS))
            self._is_loading = True
            self._load_ended.clear()
            self._loading = asyncio.wrap_future(started(self._made, "mercury-load"))
            self._loading.add_done_callback(self._loaded)
        return asyncio.shield(self._loading)

    def ask(
        self, request: Request, control: Control, owner: object, on_outcome: OnOutcome, ahead: bool = False
    ) -> None:
        """Answer when it is the owner's turn, then call `on_outcome`; a cancelled request's outcome is Cancelled.

        `ahead`: no user waits for it, so any user's request stops it.
        """
        if self._closed:
            on_outcome(Cancelled("the model is no longer in use"))
            return
        self._give_up([job for job in self._waiting if job.is_given_up])
        self._waiting.append(_Job(request, control, owner, ahead, on_outcome))
        if not ahead:
            self._asked[owner] = monotonic()
            for running in self._running:
                if running.ahead:
                    running.control.cancel.set()
        self._next()

    def asked_within(self, seconds: float, but: object) -> bool:
        """Whether another owner's user has asked recently."""
        since = monotonic() - seconds
        return any(asked > since for owner, asked in self._asked.items() if owner is not but)

    def close(self) -> "Future[None]":
        """Release the engine; returns at once. The future is done when the memory is free."""
        for running in self._running:
            running.control.cancel.set()
        self._resting.cancel()
        self._closed = True
        self._give_up(list(self._waiting))
        self._loading = None  # its result is the engine
        return started(self._drop, "mercury-load")

    def _give_up(self, jobs: list[_Job]) -> None:
        """Drop waiting jobs that nobody needs any more."""
        for job in jobs:
            self._waiting.remove(job)
            job.on_outcome(Cancelled("given up while waiting for the engine"))

    def _next(self) -> None:
        """Start jobs while there is room."""
        while self._waiting and not self._is_loading:
            # min keeps the order of arrival among equals.
            job = min(self._waiting, key=lambda job: (job.ahead, self._served.get(job.owner, 0)))
            if job.is_given_up:
                self._give_up([job])
                continue
            if len(self._running) >= (1 if job.ahead else MAX_CONCURRENT_ANSWERS):
                break
            self._waiting.remove(job)
            self._served[job.owner] = next(self._turn)
            self._running[job] = asyncio.ensure_future(self._run(job))

    async def _run(self, job: _Job) -> None:
        """Have the engine answer, and tell who waits."""
        outcome: Answer | Exception | None
        try:
            outcome = await self.engine.answer(job.request, job.control) if self.engine is not None else None
        except Exception as error:
            outcome = error
        del self._running[job]
        job.on_outcome(outcome)
        if not self._closed:
            self._resting.postpone(IDLE_REST_SECONDS)
        self._next()

    def _rest(self) -> None:
        if self.engine is not None and not self._running and not self._closed:
            self.engine.rest()

    def _loaded(self, loading: asyncio.Future[InferenceEngine]) -> None:
        self._is_loading = False
        if loading.cancelled() or loading.exception():
            self._loading = None
        self._next()

    def _made(self) -> InferenceEngine:
        try:
            self.engine = self._load()
        except Exception:
            raise
        except BaseException as error:  # a library panicked or wants to exit, which must not reach the event loop
            raise RuntimeError(repr(error)) from error
        finally:
            self._load_ended.set()
        return self.engine

    def _drop(self) -> None:
        self._load_ended.wait()
        old, self.engine = self.engine, None
        if old is not None:
            old.close()
            gc.unfreeze()  # what refers to itself could not be freed
