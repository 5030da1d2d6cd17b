"""The decoder of masked diffusion models: a canvas between cached context on both sides, denoised in a few steps."""

from mercury_engine.api import Control, FillRequest
from mercury_engine.decoding.context_reader import ContextReader, GapContext
from mercury_engine.decoding.decoder import Decoder
from mercury_engine.decoding.diffusion.denoising import Denoising
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import Network


class DiffusionDecoder(Decoder):
    """Implements `Decoder` for masked diffusion models whose context is read causally."""

    def __init__(
        self,
        reader: Network,
        denoiser: Network,
        contexts: ContextReader,
        rules: GapRules,
        options: DiffusionOptions,
    ) -> None:
        self.reader, self.contexts, self.rules, self.options = reader, contexts, rules, options
        self.denoising = Denoising(denoiser, contexts, rules, options)

    def write(self, request: FillRequest, control: Control) -> ForwardSteps[tuple[list[Hypothesis], GapContext | None]]:
        """See `Decoder.write`."""
        cut = self.contexts.cut(request)
        hypotheses = self.rules.begin(request, cut)
        return hypotheses, (yield from self.denoising.write(request, control, hypotheses, cut.read))
