"""The engines of a process; connections whose settings name the same engine share it."""

import asyncio
import math
from collections.abc import Iterator
from concurrent.futures import Future, wait
from time import monotonic
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

from mercury_lsp.engine_host.loading import LoadEngine, SharedEngine
from mercury_lsp.settings import EngineKey, Settings


class Engines:
    """One engine for each `EngineKey`, and the leases that use it."""

    def __init__(self, load: LoadEngine):
        self._load = load
        self._shared: dict[EngineKey, SharedEngine] = {}
        self._users: dict[EngineKey, set[Lease]] = {}

    def lease(self) -> "Lease":
        """A lease for a new connection; it has no engine until it loads one."""
        return Lease(self)

    def loaded(self) -> Iterator[tuple[InferenceEngine, int]]:
        """Every loaded engine, and the number of connections that use it."""
        for key, shared in self._shared.items():
            if shared.engine is not None:
                yield shared.engine, len(self._users[key])

    def asked_within(self, seconds: float, but: "Lease") -> bool:
        """Whether another user of a lease's engine has asked recently."""
        since = monotonic() - seconds
        together = [users for users in self._users.values() if but in users]
        return any(other.asked > since for users in together for other in users if other is not but)

    def move(self, lease: "Lease", settings: Settings) -> SharedEngine:
        """Move a lease to the engine for these settings.

        Unused engines are kept for the next connection, until another engine needs their memory.
        """
        self.leave(lease)
        key = settings.engine_key
        if key not in self._shared:
            freed = [self._drop(unused) for unused in [key for key, users in self._users.items() if not users]]
            self._shared[key] = SharedEngine(lambda: self._load_after(freed, settings))
        self._users.setdefault(key, set()).add(lease)
        return self._shared[key]

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
        shared = self._shared.pop(key)
        del self._users[key]
        is_loading = shared.engine is None  # no memory to wait for, and a load cannot be stopped
        freed = shared.close()
        return None if is_loading else freed

    def _load_after(self, freed: "list[Future[None] | None]", settings: Settings) -> InferenceEngine:
        """Load once the old engines are freed: two models may not fit into memory."""
        wait([each for each in freed if each is not None])
        return self._load(settings)


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
        shared = self._shared = self._engines.move(self, settings)
        self._has_shared.set()
        return await shared.load()

    def others_asked_within(self, seconds: float) -> bool:
        """Whether another connection has asked the engine in the last so many seconds."""
        return self._engines.asked_within(seconds, but=self)

    async def fill(self, request: FillRequest, control: Control | None = None, ahead: bool = False) -> Fill | None:
        """The engine's fill, once it is loaded; None without one. Raises Cancelled, and what the engine raises.

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

    def unload(self) -> None:
        """Stop using an engine, and free it unless others use it; returns at once."""
        self._engines.unload(self)
        self._shared = None
        self._has_shared.clear()

    def close(self) -> None:
        """Stop using an engine; returns at once."""
        self._engines.leave(self)
