"""The decoder of masked diffusion models: a canvas between cached context on both sides, denoised in a few steps.

A step is one pass; the last is that after which the text that is accepted from the left has ended.

Vocabularies end with mask and end.
"""

from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate, pairwise

from mercury_engine.api import Control, FillRequest
from mercury_engine.decoding.context_reader import ContextReader, GapContext
from mercury_engine.decoding.decoder import Decoder
from mercury_engine.decoding.diffusion.canvas import Canvas
from mercury_engine.decoding.diffusion.denoise_step import DenoiseStep
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.models.batching import DeadlineReached, ForwardSteps
from mercury_engine.models.network import CanvasForward, Network, packed
from mercury_engine.models.row_answers import RowAnswers, RowQuestion


class DiffusionDecoder(Decoder):
    """Implements `Decoder` for masked diffusion models whose context is read causally."""

    def __init__(self, denoiser: Network, contexts: ContextReader, rules: GapRules, options: DiffusionOptions) -> None:
        self.contexts, self.rules = contexts, rules
        self._denoiser, self._step = denoiser, DenoiseStep(rules.masks, options)

    def write(self, request: FillRequest, control: Control) -> ForwardSteps[tuple[list[Hypothesis], GapContext | None]]:
        """See `Decoder.write`; the canvases of all hypotheses share their passes."""
        cut = self.contexts.cut(request)
        hypotheses, context = self.rules.begin(request, cut), None
        with suppress(DeadlineReached):
            context = yield from self.contexts.read(request, cut.read)
            yield from self._denoise(request, control, [Canvas(each) for each in hypotheses], context)
        return hypotheses, context

    def _denoise(
        self, request: FillRequest, control: Control, canvases: Sequence[Canvas], context: GapContext
    ) -> ForwardSteps[None]:
        canvases[0].show(control)
        while live := [each for each in canvases if self.rules.is_open(request, each.written)]:
            told = yield from self._pass(live, context)
            for canvas, answers in zip(live, told, strict=True):
                canvas.written.steps += 1
                self._step.unmask(canvas, answers, is_last=canvas.written.steps == request.max_steps)
                canvas.accept(self.rules)
            canvases[0].show(control)
            for canvas in live:
                canvas.repair(self.rules, control)

    def _pass(self, canvases: Sequence[Canvas], context: GapContext) -> ForwardSteps[list[RowAnswers]]:
        """What the model tells of every canvas's slots."""
        rows = [[context.last, *canvas.written.ids, *canvas.ids] for canvas in canvases]
        ids_R, packing = packed(rows)
        ends = [sum(map(len, rows[: number + 1])) for number in range(len(rows))]
        wanted = [range(end - 1 - len(canvas.ids), end - 1) for end, canvas in zip(ends, canvases, strict=True)]
        hidden = [each for canvas in canvases for each in self._step.hidden(canvas)]
        ranked = any(canvas.written.rank for canvas in canvases)
        told: RowAnswers = yield CanvasForward(
            self._denoiser,
            ids_R,
            context.cached.before,
            context.cached.after,
            context.ends,
            packing if len(rows) > 1 else None,
            [row for each in wanted for row in each],
            RowQuestion.of(hidden, len(self.rules.vocabulary.texts) + 2, draws=ranked),
        )
        ends = [0, *accumulate(map(len, wanted))]
        return [told.part(slice(*each)) for each in pairwise(ends)]
