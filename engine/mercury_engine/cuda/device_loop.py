"""Runs fills of a deciding writer on the device: canvases become jobs, and filled canvases are taken over.

What the plain loop does after every step (`Denoiser.advance`) happens here after every chunk, with the same outcome:
slots are settled from the left, an unsure fill is given up, and a partly spelled word is continued.
"""

import logging
from functools import partial

import torch

from mercury_engine.api import FillRequest
from mercury_engine.cuda.graphs import (
    PAGE_TOKENS,
    SLOT_BUCKETS,
    UNLIMITED_STEPS,
    CanvasJob,
    FilledCanvas,
    GraphDenoiser,
)
from mercury_engine.denoising.canvas import Canvas
from mercury_engine.denoising.loop import Denoiser
from mercury_engine.denoising.slot_masks import SlotLimits, first_slot_limits
from mercury_engine.denoising.verifier import CanvasContext
from mercury_engine.models.decoder import Decoder
from mercury_engine.models.network import Network
from mercury_engine.models.torch_network import TorchNetwork

_log = logging.getLogger(__name__)


def device_loop(writer: Network, denoiser: Denoiser) -> "DeviceLoop | None":
    """The loop for a deciding writer on a GPU with room for it; otherwise None, and the log says why."""
    if not isinstance(writer, TorchNetwork) or writer.decoder.device.type != "cuda":
        _log.warning("no CUDA device: fills take the plain loop, step by step (slower, same text)")
        return None
    if not writer.config.is_plain:
        _log.warning("the GPU kernels lack this model's norms or multipliers: fills take the plain loop (same text)")
        return None
    try:
        loop = DeviceLoop(writer.decoder, denoiser)
        loop.filler.prepare_all()
        return loop
    except torch.OutOfMemoryError as error:
        _log.warning(
            "no room for graphs on %s, fills take the plain loop (slower, same text): %s", writer.device, error
        )
        return None


class DeviceLoop:
    """Runs the loop for one model. One caller at a time."""

    def __init__(self, writer: Decoder, denoiser: Denoiser, page_size: int = PAGE_TOKENS) -> None:
        self.denoiser = denoiser
        self.filler = GraphDenoiser(writer, page_size=page_size)

    def takes(self, request: FillRequest, canvases: list[Canvas]) -> bool:
        """Whether the fill may stay on the device.

        It may not if its steps are observed, if the threshold decides, or with several canvases or one longer than the
        largest bucket. Steps cannot be limited while a word is spelled, because a chunk's steps behind a part of it are
        wasted.
        """
        rule, canvas = self.denoiser.rule, canvases[0]
        alone = len(canvases) == 1 and request.on_step is None
        counted = request.max_steps is not None and bool(canvas.spell)
        fits = len(canvas.ids) <= SLOT_BUCKETS[-1] and not counted
        return alone and fits and rule.decides == "writer" and rule.threshold is None

    def run(self, request: FillRequest, canvas: Canvas, canvas_context: CanvasContext, started: float) -> None:
        """Settle slots until the end, the deadline or the cancel flag, as `Denoiser.run` does.

        A cancel flag or a deadline takes effect within one chunk; a chunk cut short counts with all its steps. Raises
        Cancelled, and ModelCorrupt for weights that compute NaN.
        """
        deadline = None if request.deadline_ms is None else started + request.deadline_ms / 1e3
        while self.denoiser.is_open(request, canvas):
            before, enough = canvas.settled, partial(self._enough, request, canvas, canvas.steps)
            self.filler.fill([self._job(request, canvas, canvas_context)], request.cancel, deadline, enough)
            if canvas.ended:
                self.denoiser.repaired(request, canvas)
            elif not (canvas.spell and canvas.settled > before):  # only a partly spelled word is continued
                break

    def _job(self, request: FillRequest, canvas: Canvas, canvas_context: CanvasContext) -> CanvasJob:
        """The job of the canvas as it is; tokens behind the settled slots are drafts."""
        assert not canvas.committed
        behind = range(canvas.settled, len(canvas.ids))
        return CanvasJob(
            canvas_context.last,
            tuple(canvas.ids),
            canvas_context.ends,
            canvas_context.context.before,
            canvas_context.context.after,
            bound=self.denoiser.rule.bound,
            mask=self._mask(SlotLimits("", request.multiline)),
            first_mask=self._mask(first_slot_limits(canvas, request.multiline)),
            drafts=[slot for slot in behind if canvas.ids[slot] != self.filler.mask_id],
            most=UNLIMITED_STEPS if request.max_steps is None else request.max_steps - canvas.steps,
        )

    def _mask(self, limits: SlotLimits) -> int:
        return self.filler.token_masks.number(limits, partial(self.denoiser.masks.hidden_tokens, limits))

    def _enough(self, request: FillRequest, canvas: Canvas, steps: int, canvases: list[FilledCanvas]) -> bool:
        """Take over what a chunk has filled; returns whether further chunks would be useless."""
        (found,) = canvases
        first = canvas.settled
        canvas.ids[first:] = found.ids[first:]
        filled = [slot for slot in range(first, len(found.ids)) if canvas.ids[slot] != self.filler.mask_id]
        canvas.committed = {slot: found.chances[slot] for slot in filled if found.chances[slot]}
        canvas.steps = steps + found.steps
        self.denoiser.advance(canvas)
        is_partly_spelled = bool(canvas.spell) and canvas.settled > first
        return is_partly_spelled or not self.denoiser.is_open(request, canvas)
