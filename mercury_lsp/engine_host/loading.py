"""Loads the engine of some settings, once for all who use it."""

import asyncio
import gc
import logging
import sys
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from threading import Event

from mercury_engine.api import Answer, Control, InferenceEngine, Request
from mercury_engine.errors import Cancelled, MercuryError

from mercury_lsp.debounce import Debounced
from mercury_lsp.engine_host import gpu_proof
from mercury_lsp.engine_host.own_thread import started
from mercury_lsp.errors import is_short_of_memory
from mercury_lsp.settings import Settings, is_url

logger = logging.getLogger(__name__)

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


class SharedEngine:
    """An engine that is loaded once, on a thread of its own, for all who use it; for the event loop's thread."""

    def __init__(self, load: Callable[[], InferenceEngine]):
        self.engine: InferenceEngine | None = None
        """None before the first load, while loading and after a failed load."""
        self._load = load
        self._loading: asyncio.Future[InferenceEngine] | None = None
        """The load; None before it and after a failed one."""
        self._load_ended = Event()
        self._load_ended.set()
        self._may_answer = asyncio.Event()
        """Set once the load has ended, or nobody uses the engine any more."""
        self._running: list[Control] = []
        """Of the requests that the engine has."""
        self._resting = Debounced(self._rest)
        self._closed = False

    def load(self) -> "asyncio.Future[InferenceEngine]":
        """The engine, loaded once for all callers; requests wait meanwhile. Raises what loading it raises."""
        if self._loading is None:
            sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_SECONDS))
            self._may_answer.clear()
            self._load_ended.clear()
            self._loading = asyncio.wrap_future(started(self._made, "mercury-load"))
            self._loading.add_done_callback(self._loaded)
        return asyncio.shield(self._loading)

    async def answer(self, request: Request, control: Control) -> Answer | None:
        """The engine's answer, once it is loaded; None if it could not be. Raises Cancelled, and as the engine does."""
        await self._may_answer.wait()
        if self._closed or control.cancel.is_set():
            raise Cancelled("the model is no longer in use" if self._closed else "given up while the model was loaded")
        if self.engine is None:
            return None
        self._running.append(control)
        try:
            return await self.engine.answer(request, control)
        finally:
            self._running.remove(control)
            if not self._closed:
                self._resting.postpone(IDLE_REST_SECONDS)

    def close(self) -> "Future[None]":
        """Release the engine; returns at once. The future is done when the memory is free."""
        for running in self._running:
            running.cancel.set()
        self._resting.cancel()
        self._closed = True
        self._may_answer.set()
        self._loading = None  # its result is the engine
        return started(self._drop, "mercury-load")

    def _rest(self) -> None:
        if self.engine is not None and not self._running and not self._closed:
            self.engine.rest()

    def _loaded(self, loading: asyncio.Future[InferenceEngine]) -> None:
        if loading.cancelled() or loading.exception():
            self._loading = None
        self._may_answer.set()

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
