"""The engines of a process, shared by all connections whose settings name the same one."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from typing import Any

from mercury_engine.api import Fill, FillRequest, Request, ScoreRequest

from mercury_lsp.engine_host.outcome import put
from mercury_lsp.engine_host.worker import HostedEngine, LoadEngine, Tell, Worker
from mercury_lsp.settings import Settings

Key = tuple[Any, ...]


class Engines:
    """By model, device and threads: a worker each, and who uses it."""

    def __init__(self, load: LoadEngine):
        self._load = load
        self._workers: dict[Key, Worker] = {}
        self._users: dict[Key, set[Lease]] = {}

    def lease(self) -> "Lease":
        """A new connection's share; it has no engine until it loads one."""
        return Lease(self)

    def loaded(self) -> Iterator[tuple[HostedEngine, int]]:
        """Every engine that is loaded, and how many use it."""
        for key, worker in self._workers.items():
            if worker.engine is not None:
                yield worker.engine, len(self._users[key])

    def move(self, lease: "Lease", settings: Settings) -> Worker:
        """The worker for these settings, which the lease uses from now on instead of its old one.

        Engines that nobody uses are kept for whoever comes next, until another one needs their memory.
        """
        self.leave(lease)
        key = settings.engine
        if key not in self._workers:
            freed = [self._drop(unused) for unused in [key for key, users in self._users.items() if not users]]
            self._workers[key] = Worker(lambda: self._load_after(freed, settings))
        self._users.setdefault(key, set()).add(lease)
        return self._workers[key]

    def leave(self, lease: "Lease") -> None:
        """The lease uses no engine any more."""
        for users in self._users.values():
            users.discard(lease)

    def _drop(self, key: Key) -> "Future[None] | None":
        worker = self._workers.pop(key)
        del self._users[key]
        is_loading = worker.engine is None  # no memory to wait for, and a load cannot be stopped
        freed = worker.close()
        return None if is_loading else freed

    def _load_after(self, freed: "list[Future[None] | None]", settings: Settings) -> HostedEngine:
        """Two models may not fit into memory: the old one goes first."""
        wait([each for each in freed if each is not None])
        return self._load(settings)


class Lease:
    """What one connection has of the engines."""

    def __init__(self, engines: Engines):
        self._engines = engines
        self._worker: Worker | None = None
        self._early: list[tuple[Request, Tell, bool]] = []
        """Asked before there was a worker."""

    @property
    def engine(self) -> HostedEngine | None:
        """None while there is none."""
        return self._worker.engine if self._worker is not None else None

    async def load(self, settings: Settings, anew: bool = False) -> HostedEngine:
        """The engine that the settings name; `anew` reads its files again. Raises whatever the loading raises."""
        worker = self._worker = self._engines.move(self, settings)
        loading = worker.load(anew)
        early, self._early = self._early, []
        for asked in early:
            self.ask(*asked)
        return await loading

    def ask(self, request: Request, tell: Tell, ahead: bool = False) -> None:
        """Have the engine answer, after the load if that is not over; see `Worker.ask`."""
        if self._worker is None:
            self._early = [asked for asked in self._early if not asked[0].cancel.is_set()]
            self._early.append((request, tell, ahead))
        else:
            self._worker.ask(request, self, tell, ahead)

    async def fill(self, request: FillRequest, ahead: bool = False) -> Fill | None:
        """The engine's answer; None when there is no engine.

        Raises Cancelled, and what the engine raises. When the caller's task is cancelled the fill stops before its next
        step.
        """
        found: Fill | None = await self._answered(request, ahead)
        return found

    async def score(self, request: FillRequest, texts: Sequence[str]) -> list[float] | None:
        """How likely the engine finds each text in the gap; waits, ends and raises as `fill` does."""
        found: list[float] | None = await self._answered(ScoreRequest(request, tuple(texts)), False)
        return found

    async def _answered(self, request: Request, ahead: bool) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.ask(request, lambda outcome: put(outcome, answer), ahead)
        try:
            return await answer
        except asyncio.CancelledError:
            request.cancel.set()
            raise

    def close(self) -> None:
        """Use no engine any more; returns at once."""
        self._engines.leave(self)
