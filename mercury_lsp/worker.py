"""The one thread that owns the engine."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

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


LoadEngine = Callable[[Settings], Engine]


def load_engine(settings: Settings) -> Engine:
    """The engine that the settings name; takes seconds. Raises ModelError."""
    from mercury_engine.engine import Engine  # imports torch

    return Engine.load(settings.model, device=settings.device, threads=settings.threads)


class Worker:
    """Loads the engine and runs fills, one after another, off the event loop."""

    def __init__(self, load: LoadEngine):
        self.engine: Engine | None = None
        """None before the first load, while loading and after a failed load."""
        self._load = load
        self._asked = asyncio.Event()
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mercury-engine")

    async def load(self, settings: Settings) -> Engine:
        """Replace the engine; fills asked for meanwhile wait. Raises whatever the loading raises."""
        loading = asyncio.get_running_loop().run_in_executor(self._executor, self._replace, settings)
        self._asked.set()
        return await loading

    async def fill(self, request: FillRequest) -> Fill | None:
        """The engine's answer, after the load if that is not over; None when there is no engine."""
        await self._asked.wait()
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._fill, request)

    def close(self) -> None:
        """Start nothing more; returns at once."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _replace(self, settings: Settings) -> Engine:
        # Let go of the old weights first: two models may not fit into memory.
        self.engine = None
        self.engine = self._load(settings)
        return self.engine

    def _fill(self, request: FillRequest) -> Fill | None:
        if request.cancel.is_set():
            raise Cancelled("superseded while waiting for the engine")
        return self.engine.fill(request) if self.engine is not None else None
