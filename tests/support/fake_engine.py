"""An engine without a model, for tests of what stands around one."""

import asyncio
from collections.abc import Sequence
from threading import Event

from mercury_engine.api import (
    Fill,
    FillRequest,
    NewRequests,
    Rewrite,
    RewriteRequest,
    SlotView,
    TellOutcome,
    one_by_one,
)
from mercury_engine.errors import Cancelled
from mercury_engine.worth import Worth


class FakeEngine:
    """Gives every request the same fill; while `held`, a fill waits until it is let go or cancelled."""

    name, device, backend, worth = "fake", "cpu", "torch", Worth()
    choice = ""
    edit_format: str | None = None

    def __init__(self, text: str = "suggested", confidence: float = 0.9):
        self.text, self.confidence = text, confidence
        self.canvases: Sequence[tuple[SlotView, ...]] = ()
        """Shown to requests that watch the denoising, one after another."""
        self.held = False
        self.asked: list[FillRequest] = []
        self.begun, self.rested = Event(), Event()

    @property
    def asked_near(self) -> list[str]:
        """The near prefix of every fill, in the order in which they began."""
        return [request.near for request in self.asked]

    def rest(self) -> None:
        self.rested.set()

    def answer_all(self, more: NewRequests, done: TellOutcome) -> None:
        one_by_one(self, more, done)

    def fill(self, request: FillRequest) -> Fill:
        self.asked.append(request)
        self.begun.set()
        while self.held and not request.cancel.is_set():
            request.cancel.wait(0.002)
        if request.cancel.is_set():
            raise Cancelled("cancelled")
        for slots in self.canvases if request.on_step else ():
            request.on_step(slots)
        return self.answer(request)

    def answer(self, request: FillRequest) -> Fill:
        """The fill, once it is let go; for subclasses that answer otherwise."""
        return Fill(self.text, self.confidence, steps=2, elapsed=0.002, is_finished=True)

    def score(self, request: FillRequest, texts: Sequence[str]) -> list[float]:
        """Each text's length, at the cost of a fill per text."""
        return [float(len(text)) for text in texts if self.fill(request)]

    def rewrite(self, request: RewriteRequest) -> Rewrite:
        """The region as it is."""
        return Rewrite(request.text, 0.9, 0.1, steps=1, elapsed=0.0, is_finished=True)


async def begun(engine: FakeEngine) -> None:
    """Wait until the engine begins a fill."""
    assert await asyncio.to_thread(engine.begun.wait, 10)
    engine.begun.clear()
