"""The engine for scripts, which answers one request after another on the caller's thread."""

from dataclasses import replace
from typing import TypeVar

from mercury_engine import engine
from mercury_engine.api import (
    Answer,
    Control,
    Fill,
    FillRequest,
    GenerateRequest,
    Generation,
    Request,
    Rewrite,
    RewriteRequest,
)
from mercury_engine.decoding.options import Calibration, DecodingOptions
from mercury_engine.kv_cache.cache import GapContext
from mercury_engine.models import batching
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import Network
from mercury_engine.scheduler import Scheduler

T = TypeVar("T")
A = TypeVar("A", bound=Answer)


def finished(steps: ForwardSteps[T], network: Network) -> T:
    """The result of the steps, with their passes run one by one."""
    try:
        forward = next(steps)
        while True:
            forward = steps.send(None if forward is None else batching.run(network, [forward])[0])
    except StopIteration as end:
        value: T = end.value
        return value


class Engine(engine.Engine):
    """The product's engine, which answers on event loops too, but not at the same time.

    `fill`, `rewrite` and `generate` raise what `answer` raises.
    """

    def varied(self, options: DecodingOptions | None = None, calibration: Calibration | None = None) -> "Engine":
        """An engine on the same networks that decodes otherwise, with a cache of its own."""
        options, calibration = options or self.parts.options, calibration or self.parts.calibration
        return Engine(replace(self.parts, options=options, calibration=calibration))

    def fill(self, request: FillRequest, control: Control | None = None) -> Fill:
        """Fill the gap; from a context larger than `prompt.layout` allows, only the nearest part is read."""
        return self._answered(request, control, Fill)

    def rewrite(self, request: RewriteRequest, control: Control | None = None) -> Rewrite:
        """The lines that should stand in place of a region after the user's recent edits.

        Not finished, so without an answer, at the deadline, where the text runs on, or where the probability falls too
        low.
        """
        return self._answered(request, control, Rewrite)

    def generate(self, request: GenerateRequest, control: Control | None = None) -> Generation:
        """The text that continues a prompt."""
        return self._answered(request, control, Generation)

    def surroundings(self, request: FillRequest, near: list[int]) -> GapContext:
        """What the decoder sees around a gap after the tokens of `near`; prefills only what is new."""
        return finished(self.decoder.contexts.read(request, near), self.reader)

    def _answered(self, request: Request, control: Control | None, kind: type[A]) -> A:
        outcomes = list[Answer | Exception]()
        waiting = [(request, control or Control(), outcomes.append)]
        Scheduler(self.reader, self.steps).answer_all(lambda: [waiting.pop()] if waiting else ())
        [outcome] = outcomes
        if isinstance(outcome, Exception):
            raise outcome
        assert isinstance(outcome, kind)
        return outcome
