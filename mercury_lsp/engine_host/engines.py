"""The engines of a process; connections whose settings name the same engine share it."""

import asyncio
import gc
import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from time import monotonic
from typing import Any

from mercury_engine.api import Answer, Control, InferenceEngine, Request, Rewrite, RewriteRequest
from mercury_engine.errors import Cancelled

from mercury_lsp.debounce import Debounced
from mercury_lsp.engine_host.loading import LoadEngine
from mercury_lsp.engine_host.own_thread import started
from mercury_lsp.settings import EngineKey, Settings

SWITCH_SECONDS = 0.0005
"""Python's switch interval, shorter than a slice of long work on the event loop. The loop releases the interpreter lock
between slices and takes it back before the engine's thread wakes up, whose wait starts over: with Python's 5 ms and
slices of 1.2 ms a call waited 0.3 to 1 s."""

IDLE_REST_SECONDS = 2.0
"""Without a request, after which the engine may rest."""


class Engines:
    """One engine for each `EngineKey`."""

    def __init__(self, load: LoadEngine):
        self._load = load
        self._shared: dict[EngineKey, SharedEngine] = {}

    def lease(self) -> "Lease":
        """A lease for a new connection; it has no engine until it loads one."""
        return Lease(self)

    def loaded(self) -> Iterator[tuple[InferenceEngine, int]]:
        """Every loaded engine, and the number of connections that use it."""
        for shared in self._shared.values():
            if shared.engine is not None:
                yield shared.engine, len(shared.users)

    def named(self, settings: Settings) -> "SharedEngine":
        """The engine that the settings name.

        Unused engines are kept for the next connection, until another engine needs their memory.
        """
        key = settings.engine_key
        if key not in self._shared:
            unused = [shared for shared in self._shared.values() if not shared.users]
            freed = [each for shared in unused if (each := self.drop(shared)) is not None]

            def load() -> InferenceEngine:
                wait(freed)  # two models may not fit into memory
                return self._load(settings)

            self._shared[key] = SharedEngine(load)
        return self._shared[key]

    def drop(self, shared: "SharedEngine") -> "Future[None] | None":
        """Free an engine; returns at once, with what is done once its memory is free."""
        self._shared = {key: each for key, each in self._shared.items() if each is not shared}
        is_loading = shared.engine is None  # no memory to wait for, and a load cannot be stopped
        freed = shared.close()
        return None if is_loading else freed


class SharedEngine:
    """An engine that is loaded once, on a thread of its own, for all who use it; for the event loop's thread."""

    def __init__(self, load: Callable[[], InferenceEngine]):
        self.engine: InferenceEngine | None = None
        """None before the first load, while loading and after a failed load."""
        self.users = set["Lease"]()
        self._load = load
        self._loading: asyncio.Future[InferenceEngine] | None = None
        """The load; None before it and after a failed one."""
        self._loads: list[Future[InferenceEngine]] = []
        """The same load on its thread, until it has ended."""
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
            self._loads = [started(self._made, "mercury-load")]
            self._loading = asyncio.wrap_future(self._loads[0])
            self._loading.add_done_callback(self._loaded)
        return asyncio.shield(self._loading)

    async def answer(self, request: Request, control: Control) -> Answer | None:
        """The engine's answer, once it is loaded; None if it could not be. Raises Cancelled, and as the engine does."""
        await self._may_answer.wait()
        if self._closed or control.cancel.is_set():
            raise Cancelled("the model is no longer in use" if self._closed else "cancelled while it was loaded")
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
        self._loads = []
        self._may_answer.set()

    def _made(self) -> InferenceEngine:
        self.engine = self._load()
        return self.engine

    def _drop(self) -> None:
        wait(self._loads)
        old, self.engine = self.engine, None
        if old is not None:
            old.close()
            gc.unfreeze()  # what refers to itself could not be freed


class Lease:
    """One connection's use of the engines."""

    def __init__(self, engines: Engines):
        self._engines = engines
        self._shared: SharedEngine | None = None
        self._has_shared = asyncio.Event()
        self.asked = -math.inf
        """When its user last asked, on the monotonic clock."""

    @property
    def engine(self) -> InferenceEngine | None:
        """The loaded engine; None while there is none."""
        return self._shared.engine if self._shared is not None else None

    async def load(self, settings: Settings) -> InferenceEngine:
        """The engine that the settings name. Raises what loading it raises."""
        self.close()
        shared = self._shared = self._engines.named(settings)
        shared.users.add(self)
        self._has_shared.set()
        return await shared.load()

    def others_asked_within(self, seconds: float) -> bool:
        """Whether another connection has asked the engine within this many seconds."""
        since, users = monotonic() - seconds, self._shared.users if self._shared is not None else ()
        return any(other.asked > since for other in users if other is not self)

    async def answer(self, request: Request, control: Control | None = None, ahead: bool = False) -> Any:
        """The engine's answer, once it is loaded; None without one. Raises Cancelled, and what the engine raises.

        If the caller's task is cancelled, the answer stops before its next step.
        """
        control = control or Control()
        control.client, control.is_ahead = self, ahead
        if not ahead:
            self.asked = monotonic()
        try:
            while (shared := self._shared) is None:
                await self._has_shared.wait()
            return await shared.answer(request, control)
        except asyncio.CancelledError:
            control.cancel.set()
            raise

    async def rewrite(self, request: RewriteRequest, control: Control | None = None) -> Rewrite | None:
        """The engine's rewrite; None, cancelled and raises as for `answer`."""
        found: Rewrite | None = await self.answer(request, control)
        return found

    def unload(self) -> None:
        """Stop using an engine, and free it unless others use it; returns at once."""
        if (shared := self._shared) is not None and self in shared.users:
            self.close()
            if not shared.users:
                self._engines.drop(shared)
        self._shared = None
        self._has_shared.clear()

    def close(self) -> None:
        """Stop using an engine; returns at once."""
        if self._shared is not None:
            self._shared.users.discard(self)
