"""Denoising in chunks of steps that a GPU makes without the host, several requests at a time.

What the plain loop does after every step happens here after every chunk, with the same outcome: slots are accepted from
the left, an unsure fill is given up, and a partly spelled word is continued.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import torch

from mercury_engine.api import Control, FillRequest
from mercury_engine.cuda.graphs import PAGE_TOKENS, SLOT_BUCKETS, GraphDenoiser
from mercury_engine.decoding.context_reader import ContextReader, GapContext
from mercury_engine.decoding.diffusion.canvas import Canvas
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.decoding.slot_masks import SlotLimits, next_limits
from mercury_engine.models.batching import DeadlineReached, ForwardSteps
from mercury_engine.models.canvas_chunks import UNLIMITED_STEPS, CanvasChunk, FilledCanvas
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.network import Network
from mercury_engine.models.torch_network import TorchNetwork

_log = logging.getLogger(__name__)


def device_denoising(
    network: Network, contexts: ContextReader, rules: GapRules, options: DiffusionOptions
) -> "DeviceDenoising | None":
    """Denoising on a GPU with room for it; otherwise None, and the log says why."""
    if not isinstance(network, TorchNetwork) or network.decoder.device.type != "cuda":
        _log.warning("no CUDA device: fills are denoised step by step (slower, same text)")
        return None
    if not network.config.is_plain:
        _log.warning("the GPU kernels lack this model's norms or multipliers: fills are denoised step by step")
        return None
    try:
        made = DeviceDenoising(network.decoder, contexts, rules, options)
        made.denoiser.prepare_all()
        return made
    except torch.OutOfMemoryError as error:
        _log.warning(
            "no room for graphs on %s, fills are denoised step by step (slower, same text): %s", network.device, error
        )
        return None


class DeviceDenoising:
    """Implements `diffusion.decoder.DenoisingOnGpu`."""

    def __init__(
        self,
        decoder: TorchDecoder,
        contexts: ContextReader,
        rules: GapRules,
        options: DiffusionOptions,
        page_size: int = PAGE_TOKENS,
    ) -> None:
        self._contexts, self._rules, self._options = contexts, rules, options
        self.denoiser = GraphDenoiser(decoder, page_size=page_size)

    def takes(self, request: FillRequest, control: Control, hypotheses: Sequence[Hypothesis]) -> bool:
        """Whether the fill may stay on the device.

        It may not if its steps are watched, if the threshold decides, if its length is given, or with several canvases
        or one longer than the largest bucket. Steps cannot be limited while a word is spelled, because a chunk's steps
        after a part of it are wasted.
        """
        alone = len(hypotheses) == 1 and control.on_step is None
        counted = request.max_steps is not None and bool(hypotheses[0].spell)
        fits = hypotheses[0].capacity <= SLOT_BUCKETS[-1] and not counted
        return alone and fits and self._options.threshold is None and self._options.searches_length

    def write(
        self, request: FillRequest, control: Control, hypotheses: Sequence[Hypothesis], near: list[int]
    ) -> ForwardSteps[GapContext | None]:
        """See `Denoising.write`; a deadline or a cancel flag takes effect after a chunk."""
        context: GapContext | None = None
        with suppress(DeadlineReached):
            context = yield from self._contexts.read(request, near)
            canvas = Canvas(hypotheses[0])
            while self._rules.is_open(request, canvas.written):
                filled = yield self._chunk(request, canvas, context)
                self._take_over(canvas, filled)
                canvas.repair(self._rules, control)
        return context

    def forget(self) -> None:
        """Free the pages of all contexts; they are copied again when they are needed."""
        self.denoiser.forget()

    def _chunk(self, request: FillRequest, canvas: Canvas, context: GapContext) -> CanvasChunk:
        """The next steps of the canvas; tokens that no step has unmasked are drafts."""
        written, mask = canvas.written, canvas.written.vocabulary.mask_id
        slots = zip(canvas.ids, canvas.probabilities, strict=True)
        return CanvasChunk(
            self.denoiser,
            context.last,
            (*written.ids, *canvas.ids),
            context.ends,
            context.cached.before,
            context.cached.after,
            bound=self._options.bound,
            mask=self._mask(SlotLimits("", request.multiline)),
            first_mask=self._mask(next_limits(written)),
            drafts=[
                slot
                for slot, (token, probability) in enumerate(slots, len(written.ids))
                if token != mask and probability is None
            ],
            most=UNLIMITED_STEPS if request.max_steps is None else request.max_steps - written.steps,
        )

    def _mask(self, limits: SlotLimits) -> int:
        return self.denoiser.token_masks.number(limits, partial(self._rules.masks.hidden_tokens, limits))

    def _take_over(self, canvas: Canvas, filled: FilledCanvas) -> None:
        """Unmask what a chunk has unmasked, and accept it from the left."""
        first, mask = len(canvas.written.ids), canvas.written.vocabulary.mask_id
        known = canvas.probabilities
        canvas.ids, found = filled.ids[first:], filled.probabilities[first:]
        canvas.probabilities = [
            None if token == mask or not new else new if old is None else old
            for token, old, new in zip(canvas.ids, known, found, strict=True)
        ]
        canvas.written.steps += filled.steps
        canvas.accept(self._rules)
