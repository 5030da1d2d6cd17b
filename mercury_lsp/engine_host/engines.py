"""The engines of a process; connections whose settings name the same engine share it."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future, wait
from typing import Any

from mercury_engine.api import (
    Control,
    Fill,
    FillRequest,
    InferenceEngine,
    Request,
    Rewrite,
    RewriteRequest,
)
from mercury_engine.serving import resolve

from mercury_lsp.engine_host.worker import LoadEngine, OnOutcome, Worker
from mercury_lsp.settings import EngineKey, Settings


class Engines:
    """One worker for each `EngineKey`, and the leases that use it."""

    def __init__(self, load: LoadEngine):
        self._load = load
        self._workers: dict[EngineKey, Worker] = {}
        self._users: dict[EngineKey, set[Lease]] = {}

    def lease(self) -> "Lease":
        """A lease for a new connection; it has no engine until it loads one."""
        return Lease(self)

    def loaded(self) -> Iterator[tuple[InferenceEngine, int]]:
        """Every loaded engine, and the number of connections that use it."""
        for key, worker in self._workers.items():
            if worker.engine is not None:
                yield worker.engine, len(self._users[key])

    def move(self, lease: "Lease", settings: Settings) -> Worker:
        """Move a lease to the worker for these settings.

        Unused engines are kept for the next connection, until another engine needs their memory.
        """
        self.leave(lease)
        key = settings.engine_key
        if key not in self._workers:
            freed = [self._drop(unused) for unused in [key for key, users in self._users.items() if not users]]
            self._workers[key] = Worker(lambda: self._load_after(freed, settings))
        self._users.setdefault(key, set()).add(lease)
        return self._workers[key]

    def leave(self, lease: "Lease") -> None:
        """The lease no longer uses an engine."""
        for users in self._users.values():
            users.discard(lease)

    def unload(self, lease: "Lease") -> None:
        """The lease no longer uses an engine, which is freed unless others use it."""
        keys = [key for key, users in self._users.items() if lease in users]
        self.leave(lease)
        for key in keys:
            if not self._users[key]:
                self._drop(key)

    def _drop(self, key: EngineKey) -> "Future[None] | None":
        worker = self._workers.pop(key)
        del self._users[key]
        is_loading = worker.engine is None  # no memory to wait for, and a load cannot be stopped
        freed = worker.close()
        return None if is_loading else freed

    def _load_after(self, freed: "list[Future[None] | None]", settings: Settings) -> InferenceEngine:
        """Load once the old engines are freed: two models may not fit into memory."""
        wait([each for each in freed if each is not None])
        return self._load(settings)


class Lease:
    """One connection's use of the engines."""

    def __init__(self, engines: Engines):
        self._engines = engines
        self._worker: Worker | None = None
        self._early: list[tuple[Request, Control, OnOutcome, bool]] = []
        """Requests from before there was a worker."""

    @property
    def engine(self) -> InferenceEngine | None:
        """The loaded engine; None while there is none."""
        return self._worker.engine if self._worker is not None else None

    async def load(self, settings: Settings) -> InferenceEngine:
        """The engine that the settings name. Raises what loading it raises."""
        worker = self._worker = self._engines.move(self, settings)
        loading = worker.load()
        early, self._early = self._early, []
        for asked in early:
            self.ask(*asked)
        return await loading

    def ask(self, request: Request, control: Control, on_outcome: OnOutcome, ahead: bool = False) -> None:
        """Have the engine answer, once it is loaded; see `Worker.ask`."""
        if self._worker is None:
            self._early = [asked for asked in self._early if not asked[1].cancel.is_set()]
            self._early.append((request, control, on_outcome, ahead))
        else:
            self._worker.ask(request, control, self, on_outcome, ahead)

    def others_asked_within(self, seconds: float) -> bool:
        """Whether another connection has asked the engine in the last so many seconds."""
        return self._worker is not None and self._worker.asked_within(seconds, but=self)

    async def fill(self, request: FillRequest, control: Control | None = None, ahead: bool = False) -> Fill | None:
        """The engine's fill; None without an engine. Raises Cancelled, and what the engine raises.

        If the caller's task is cancelled, the fill stops before its next step.
        """
        found: Fill | None = await self.answer(request, control, ahead)
        return found

    async def rewrite(self, request: RewriteRequest, control: Control | None = None) -> Rewrite | None:
        """The engine's rewrite; None, cancelled and raises as for `fill`."""
        found: Rewrite | None = await self.answer(request, control)
        return found

    async def answer(self, request: Request, control: Control | None = None, ahead: bool = False) -> Any:
        """The engine's answer to any request; None, cancelled and raises as for `fill`."""
        control = control or Control()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.ask(request, control, lambda outcome: resolve(answer, outcome), ahead)
        try:
            return await answer
        except asyncio.CancelledError:
            control.cancel.set()
            raise

    def unload(self) -> None:
        """Stop using an engine, and free it unless others use it; returns at once."""
        self._engines.unload(self)
        self._worker = None

    def close(self) -> None:
        """Stop using an engine; returns at once."""
        self._engines.leave(self)
