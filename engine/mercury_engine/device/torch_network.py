"""The network run by torch: on a GPU, and on a CPU where the C kernels cannot run a model.

Dimensions as in `network.py`; one request at a time (B = 1).
"""

import logging
from collections.abc import Collection, Generator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from mercury_kernels import ops
from torch import Tensor

from mercury_engine.device.ahead import DenoiseAhead
from mercury_engine.device.answers import Head, sent
from mercury_engine.device.step import DeviceStep, PlacedBlock, PlacedSegment
from mercury_engine.models import decoder_weights
from mercury_engine.models.arrays import IdArray
from mercury_engine.models.decoder import Adapted, TorchDecoder
from mercury_engine.models.network import (
    CanvasForward,
    ForwardRequest,
    KeyValueBlock,
    KeyValueSegment,
    ModelConfig,
    Packing,
)
from mercury_engine.models.row_answers import RowAnswers, RowQuestion, answered, parted_by_rows

OLDEST_BFLOAT16_CAPABILITY = (8, 0)
"""Compute capability of the first GPUs that multiply bfloat16."""

_log = logging.getLogger(__name__)


class TorchNetwork:
    """Implements `Network` with a decoder; hidden states, keys, values and log-probabilities stay on its device."""

    backend = "torch"

    def __init__(self, decoder: TorchDecoder, step: DeviceStep | None = None) -> None:
        """`step` runs the passes that fit it; see `capture`."""
        self.decoder, self.config, self.device = decoder, decoder.config, str(decoder.device)
        self.adapters: Collection[str] = decoder.named_adapters
        self.step = step
        self._head = Head(decoder) if decoder.device.type == "cuda" else None
        self._ahead: DenoiseAhead | None = None

    def capture(self) -> None:
        """Run passes in graphs from now on, if there is room for them."""
        decoder = self.decoder
        assert self._head is not None
        try:
            if (why := why_no_kernels(self.config, decoder.device)) is not None:
                _log.warning("the kernels do not run this model (%s): torch's operations do (slower, same text)", why)
            self.step = DeviceStep(decoder, is_fused=why is None)
            self.step.prepare()
            if self.config.kind == "masked":
                self._ahead = DenoiseAhead(decoder, self.step, self._head)
                self._ahead.prepare()
        except torch.OutOfMemoryError as error:
            self.step = self._ahead = None
            short = str(error).splitlines()[0]
            _log.warning(
                "no room for graphs on %s, passes are launched one by one (slower, same text): %s", self.device, short
            )

    def rest(self) -> None:
        if self.step is not None:
            self.step.release()
        if self.decoder.device.type == "cuda":
            torch.cuda.empty_cache()

    @torch.no_grad()
    def read_together(self, forwards: Sequence[ForwardRequest]) -> list[tuple[Tensor, KeyValueBlock]]:
        """See `Network.read_together`; one pass each."""
        return [self._read(each) for each in forwards]

    @torch.no_grad()
    def read_in_parts(self, forward: ForwardRequest) -> Generator[None, None, tuple[Tensor, KeyValueBlock]]:
        """See `Network.read_in_parts`; not paused, for on a GPU it takes milliseconds."""
        yield from ()
        return self._read(forward)

    @torch.no_grad()
    def told_ahead(self, forward: ForwardRequest | CanvasForward) -> RowAnswers | None:
        return None if self._ahead is None else self._ahead.told(forward, self._adapted(forward))

    def _stop(self) -> None:
        if self._ahead is not None:
            self._ahead.stop()

    def _adapted(self, forward: ForwardRequest | CanvasForward) -> Adapted:
        if isinstance(forward, CanvasForward):
            return True
        return forward.adapter if forward.adapter in self.adapters else False

    def _read(self, forward: ForwardRequest) -> tuple[Tensor, KeyValueBlock]:
        adapted = self._adapted(forward)
        self._stop()
        if self.step is not None and (found := self.step.read(forward, adapted)) is not None:
            return found
        packing = self._moved(forward.packing)
        ids = self._tensor(forward.ids_T)[None]
        hidden, block = self.decoder.read(ids, forward.past, forward.start, packing, adapted, forward.block)
        return hidden[0], block

    @torch.no_grad()
    def denoise_together(self, forwards: Sequence[CanvasForward]) -> list[Tensor]:
        """See `Network.denoise_together`; one pass each."""
        return [self._denoise(each) for each in forwards]

    def _denoise(self, forward: CanvasForward) -> Tensor:
        self._stop()
        if self.step is not None and (found := self.step.denoise(forward)) is not None:
            return found
        ends = self._tensor(np.array([forward.end]))
        ids, packing = self._tensor(forward.ids_R)[None], self._moved(forward.packing)
        return self.decoder.write(ids, forward.before, forward.after, ends, packing)[0]

    @torch.no_grad()
    def log_probabilities(self, hidden_RC: Tensor) -> Tensor:
        return self.decoder.logits(hidden_RC).log_softmax(-1)

    @torch.no_grad()
    def answers(self, hidden_WC: Tensor, questions: Sequence[RowQuestion]) -> list[RowAnswers]:
        if self._head is None:
            return _answered(self.decoder.logits(hidden_WC), questions)
        return self._head.answers(hidden_WC, questions, is_slots=False)

    @torch.no_grad()
    def slot_answers(self, hidden_WC: Tensor, questions: Sequence[RowQuestion]) -> list[RowAnswers]:
        if self._head is None:
            return _answered(self.decoder.writer_logits(hidden_WC), questions)
        return self._head.answers(hidden_WC, questions, is_slots=True)

    def kept(self, block: KeyValueBlock) -> KeyValueBlock:
        return KeyValueBlock(block.keys.clone(), block.values.clone())

    @torch.no_grad()
    def rotated(self, block: KeyValueBlock, start: int) -> KeyValueSegment:
        if isinstance(block, PlacedBlock) and block.start == start:
            return block.segment
        return self.decoder.rotated(block, start) if self._ahead is None else PlacedSegment(self.decoder, block, start)

    @torch.no_grad()
    def side_by_side(self, blocks: Sequence[KeyValueBlock], start: int) -> KeyValueSegment:
        return self.decoder.side_by_side(blocks, start)

    def _tensor(self, array: IdArray) -> Tensor:
        return sent(array, self.decoder.device)

    def _moved(self, packing: Packing | None) -> Packing | None:
        if packing is None:
            return None
        return Packing(*(self._tensor(each) for each in (packing.canvas, packing.place, packing.rows)))


def _answered(logits_WV: Tensor, questions: Sequence[RowQuestion]) -> list[RowAnswers]:
    parts = parted_by_rows(logits_WV.float().cpu().numpy(), questions)
    return [answered(logits, asks) for logits, asks in zip(parts, questions, strict=True)]


def element_type(device: torch.device) -> torch.dtype:
    """bfloat16 on a GPU that multiplies it, else float32: a CPU on which torch runs a model has no C kernels for it."""
    if device.type != "cuda":
        return torch.float32
    if (found := torch.cuda.get_device_capability(device)) >= OLDEST_BFLOAT16_CAPABILITY:
        return torch.bfloat16
    name = torch.cuda.get_device_name(device)
    _log.warning("%s (compute capability %d.%d) has no bfloat16: the model runs in float32, slower", name, *found)
    return torch.float32


def load(
    folder: Path, device: Literal["cpu", "cuda"], dtype: torch.dtype | None, threads: int, has_codes: bool = False
) -> tuple[TorchNetwork, TorchNetwork | None]:
    """The network that reads, and for a masked model the one that denoises. Raises ModelNotFound and ModelCorrupt.

    `has_codes`: the layers' weights are held in eight bits.
    """
    torch_device = torch.device(device)
    if device == "cpu":
        torch.set_num_threads(threads)
    decoder = decoder_weights.load(folder, dtype or element_type(torch_device), torch_device, has_codes)
    reader = TorchNetwork(decoder)
    if device == "cuda":
        reader.capture()
    return reader, reader if decoder.config.adapter_rank else None


def why_no_kernels(config: ModelConfig, device: torch.device) -> str | None:
    """Why our kernels do not run a model's layers on a GPU; None if they do."""
    return ops.why_not(device) if config.residual_multiplier == 1 else "they do not scale residuals"
