"""Denoising: steps of one pass each, until the text that is accepted from the left has ended.

Dimensions: S slots of a canvas, V vocabulary with mask and end.
"""

from collections.abc import Sequence
from contextlib import suppress

from mercury_engine.api import Control, FillRequest
from mercury_engine.decoding.context_reader import ContextReader, GapContext
from mercury_engine.decoding.diffusion.canvas import Canvas
from mercury_engine.decoding.diffusion.denoise_step import DenoiseStep
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.models.arrays import Array, parted
from mercury_engine.models.batching import DeadlineReached, ForwardSteps
from mercury_engine.models.network import CanvasForward, Network, packed


class Denoising:
    """Denoises canvases of one model; several of one gap share their passes."""

    def __init__(self, network: Network, contexts: ContextReader, rules: GapRules, options: DiffusionOptions) -> None:
        self._network, self._contexts, self._rules = network, contexts, rules
        self._step = DenoiseStep(rules.masks, options)

    def write(
        self, request: FillRequest, control: Control, hypotheses: Sequence[Hypothesis], near: list[int]
    ) -> ForwardSteps[GapContext | None]:
        """Read the context after `near` and denoise until all hypotheses have ended, or time is up.

        Returns the context; None if time was up before it was read.
        """
        context: GapContext | None = None
        with suppress(DeadlineReached):
            context = yield from self._contexts.read(request, near)
            yield from self._denoise(request, control, [Canvas(each) for each in hypotheses], context)
        return context

    def _denoise(
        self, request: FillRequest, control: Control, canvases: Sequence[Canvas], context: GapContext
    ) -> ForwardSteps[None]:
        canvases[0].show(control)
        while live := [each for each in canvases if self._rules.is_open(request, each.written)]:
            expected = yield from self._pass(live, context)
            for canvas, logp_SV in zip(live, expected, strict=True):
                canvas.written.steps += 1
                self._step.unmask(canvas, logp_SV, is_last=canvas.written.steps == request.max_steps)
                canvas.accept(self._rules)
            canvases[0].show(control)
            for canvas in live:
                canvas.repair(self._rules, control)

    def _pass(self, canvases: Sequence[Canvas], context: GapContext) -> ForwardSteps[list[Array]]:
        """For every canvas the model's log-probabilities [S,V] at its slots."""
        rows = [[context.last, *canvas.written.ids, *canvas.ids] for canvas in canvases]
        ids_R, packing = packed(rows)
        ends = [sum(map(len, rows[: number + 1])) for number in range(len(rows))]
        wanted = [range(end - 1 - len(canvas.ids), end - 1) for end, canvas in zip(ends, canvases, strict=True)]
        logp_WV = yield CanvasForward(
            self._network,
            ids_R,
            context.cached.before,
            context.cached.after,
            context.ends,
            packing if len(rows) > 1 else None,
            [row for each in wanted for row in each],
        )
        return parted(logp_WV, wanted)
