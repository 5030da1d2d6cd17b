"""An engine without a model, for tests of what stands around one."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from threading import Event

from mercury_engine.api import (
    Answer,
    ChatFormat,
    Control,
    Fill,
    FillRequest,
    GenerateRequest,
    Generation,
    Request,
    Rewrite,
    SlotView,
    Words,
)
from mercury_engine.errors import Cancelled
from mercury_engine.scheduler import Turns
from mercury_engine.utility import Utility


class FakeEngine:
    """Gives every request the same fill; while `held`, an answer waits until it is let go or cancelled."""

    name, device, backend, utility = "fake", "cpu", "torch", Utility()
    edit_format: str | None = None
    chat_format: ChatFormat | None = None
    words: Words | None = None

    def __init__(self, text: str = "suggested", confidence: float = 0.9):
        self.text, self.confidence = text, confidence
        self.canvases: Sequence[tuple[SlotView, ...]] = ()
        """Shown to requests that watch the decoding, one after another."""
        self.held = False
        self.asked: list[FillRequest] = []
        self.controls: list[Control] = []
        """Those of the requests in `asked`."""
        self.generating: list[GenerateRequest] = []
        self.generation_controls: list[Control] = []
        self.parts: Sequence[str] = (text,)
        """Parts of a generated text."""
        self.begun, self.rested = Event(), Event()
        self._turns, self._running = Turns(), list[Control]()

    @property
    def asked_near(self) -> list[str]:
        """The near prefix of every fill, in the order in which they began."""
        return [request.near for request in self.asked]

    @asynccontextmanager
    async def _turn(self, request: Request, control: Control) -> AsyncIterator[None]:
        """Wait as for the scheduler: clients take turns, and users stop what looks ahead."""
        begun = asyncio.Event()
        self._turns.waiting.append((request, control, lambda _: begun.set()))
        for each in self._running:
            if each.is_ahead and not control.is_ahead:
                each.cancel.set()
        try:
            self._start()
            await begun.wait()
            yield
        finally:
            self._running = [each for each in self._running if each is not control]
            self._turns.waiting = [each for each in self._turns.waiting if each[1] is not control]
            self._start()

    def _start(self) -> None:
        for _, control, start in self._turns.starting(len(self._running)):
            self._running.append(control)
            start(Cancelled())

    async def answer(self, request: Request, control: Control | None = None) -> Answer:
        control = control or Control()
        async with self._turn(request, control):
            return await self._answer(request, control)

    async def _answer(self, request: Request, control: Control) -> Answer:
        if isinstance(request, FillRequest):
            self.asked.append(request)
            self.controls.append(control)
            self.begun.set()
            while self.held and not control.cancel.is_set():
                await asyncio.sleep(0.002)
        if control.cancel.is_set():
            raise Cancelled("cancelled")
        if isinstance(request, GenerateRequest):
            self.generating.append(request)
            self.generation_controls.append(control)
            for part in self.parts if control.on_text else ():
                control.on_text(part)
                await asyncio.sleep(0)  # it arrives before the answer, as from an engine's own thread
            try:
                while self.held:
                    await asyncio.sleep(0.002)
            except asyncio.CancelledError:
                control.cancel.set()
                raise
            return self.generation
        if not isinstance(request, FillRequest):  # the region as it is
            return Rewrite(request.text, steps=1, elapsed=0.0, is_finished=True)
        for slots in self.canvases if control.on_step else ():
            control.on_step(slots)
        await asyncio.sleep(0)  # as an engine on its own thread
        return self.fill(request)

    @property
    def generation(self) -> Generation:
        """The answer to every request to generate."""
        return Generation("".join(self.parts), "stop", 7, 4, len(self.parts), steps=2, elapsed=0.0)

    def fill(self, request: FillRequest) -> Fill:
        """The fill, once it is let go; for subclasses that answer otherwise."""
        return Fill(self.text, self.confidence, steps=2, elapsed=0.002, is_finished=True)

    def rest(self) -> None:
        self.rested.set()

    def close(self) -> None: ...


async def begun(engine: FakeEngine) -> None:
    """Wait until the engine begins a fill."""
    assert await asyncio.to_thread(engine.begun.wait, 10)
    engine.begun.clear()
