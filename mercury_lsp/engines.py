"""The engines of a process, shared by all connections whose settings name the same one."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from typing import Any

from mercury_engine.requests import Fill, FillRequest

from mercury_lsp.settings import Settings
from mercury_lsp.worker import Engine, LoadEngine, Worker

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

    def loaded(self) -> Iterator[tuple[Engine, int]]:
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

    def _load_after(self, freed: "list[Future[None] | None]", settings: Settings) -> Engine:
        """Two models may not fit into memory: the old one goes first."""
        wait([each for each in freed if each is not None])
        return self._load(settings)


class Lease:
    """What one connection has of the engines."""

    def __init__(self, engines: Engines):
        self._engines = engines
        self._worker: Worker | None = None
        self._asked = asyncio.Event()

    @property
    def engine(self) -> Engine | None:
        """None while there is none."""
        return self._worker.engine if self._worker is not None else None

    async def load(self, settings: Settings, anew: bool = False) -> Engine:
        """The engine that the settings name; `anew` reads its files again. Raises whatever the loading raises."""
        self._worker = self._engines.move(self, settings)
        self._asked.set()
        return await self._worker.load(anew)

    async def fill(self, request: FillRequest, ahead: bool = False) -> Fill | None:
        """The engine's answer, after the load if that is not over; None when there is no engine. See Worker.fill."""
        await self._asked.wait()
        assert self._worker is not None
        return await self._worker.fill(request, self, ahead)

    async def compare(self, request: FillRequest, texts: Sequence[str]) -> list[float] | None:
        """How likely the engine finds each text in the gap; waits as `fill` does, None when there is no engine."""
        await self._asked.wait()
        assert self._worker is not None
        return await self._worker.compare(request, texts, self)

    def close(self) -> None:
        """Use no engine any more; returns at once."""
        self._engines.leave(self)
