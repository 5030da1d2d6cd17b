"""The decoder of masked diffusion models: a canvas between cached context on both sides, denoised in a few steps."""

from collections.abc import Sequence
from typing import Protocol

from mercury_engine.api import (
    Control,
    Fill,
    FillRequest,
    GenerateRequest,
    Generation,
    Rewrite,
    RewriteRequest,
    ScoreRequest,
    Scores,
)
from mercury_engine.decoding.autoregressive.scoring import score_gap
from mercury_engine.decoding.context_reader import ContextReader, GapContext
from mercury_engine.decoding.diffusion.denoising import Denoising
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.decoding.results import fill_of
from mercury_engine.errors import RequestError
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import Network


class DenoisingOnGpu(Protocol):
    """Denoising that makes several steps without the host, with the same outcome; see `cuda.device_denoising`."""

    def takes(self, request: FillRequest, control: Control, hypotheses: Sequence[Hypothesis]) -> bool:
        """Whether it can run this fill."""

    def write(
        self, request: FillRequest, control: Control, hypotheses: Sequence[Hypothesis], near: list[int]
    ) -> ForwardSteps[GapContext | None]:
        """See `Denoising.write`."""

    def forget(self) -> None:
        """Free the device memory of contexts."""


class DiffusionDecoder:
    """Implements `Decoder` for masked diffusion models whose context is read causally."""

    edit_format: str | None = None
    """None: no such model was trained to rewrite regions."""

    def __init__(
        self,
        reader: Network,
        denoiser: Network,
        contexts: ContextReader,
        rules: GapRules,
        options: DiffusionOptions,
        on_gpu: DenoisingOnGpu | None = None,
    ) -> None:
        """`on_gpu`: None off a GPU, and where a GPU's kernels do not run the model."""
        self.reader, self.contexts, self.rules, self.options = reader, contexts, rules, options
        self.denoising, self.on_gpu = Denoising(denoiser, contexts, rules, options), on_gpu

    @property
    def backend(self) -> str:
        """See `Decoder.backend`."""
        return "" if self.on_gpu is None else "steps on the device"

    def write(self, request: FillRequest, control: Control) -> ForwardSteps[tuple[list[Hypothesis], GapContext | None]]:
        """See `Decoder.write`."""
        cut = self.contexts.cut(request)
        hypotheses = self.rules.begin(request, cut)
        on_gpu = self.on_gpu if self.on_gpu is not None and self.on_gpu.takes(request, control, hypotheses) else None
        return hypotheses, (yield from (on_gpu or self.denoising).write(request, control, hypotheses, cut.read))

    def fill(self, request: FillRequest, control: Control) -> ForwardSteps[Fill]:
        """See `Decoder.fill`."""
        return fill_of(request, *(yield from self.write(request, control)), self.rules)

    def score(self, request: ScoreRequest) -> ForwardSteps[Scores]:
        """See `Decoder.score`; the network that reads the context scores, which is causal."""
        return score_gap(self.reader, self.contexts, self.rules, request)

    def rewrite(self, request: RewriteRequest) -> ForwardSteps[Rewrite]:
        """Raises RequestError."""
        raise RequestError("a masked diffusion model does not rewrite regions here; choose a causal one")

    def generate(self, request: GenerateRequest, prompt: list[int], control: Control) -> ForwardSteps[Generation]:
        """Raises RequestError."""
        raise RequestError("a masked diffusion model fills gaps and generates no text here; choose a causal one")

    def forget(self) -> None:
        """See `Decoder.forget`."""
        if self.on_gpu is not None:
            self.on_gpu.forget()
