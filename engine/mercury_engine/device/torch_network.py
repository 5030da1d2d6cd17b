"""The network run by torch: on a GPU, and on a CPU where the C kernels cannot run a model.

Dimensions as in `network.py`; one request at a time (B = 1).
"""

import logging
from collections.abc import Collection, Generator, Sequence
from pathlib import Path
from typing import Literal

import torch
from mercury_kernels import ops
from torch import Tensor

from mercury_engine.device.ahead import DenoiseAhead
from mercury_engine.device.answers import ROWS, Head
from mercury_engine.device.step import DeviceStep, PlacedSegment
from mercury_engine.models import decoder_weights
from mercury_engine.models.decoder import Adapted, TorchDecoder
from mercury_engine.models.network import NO_BLOCK, ForwardRequest, KeyValueBlock, KeyValueSegment
from mercury_engine.models.row_answers import RowAnswers, RowQuestion

OLDEST_BFLOAT16_CAPABILITY = (8, 0)
"""Compute capability of the first GPUs that multiply bfloat16."""

_log = logging.getLogger(__name__)


class TorchNetwork:
    """Implements `Network` with a decoder; hidden states, keys, values and log-probabilities stay on its device."""

    backend = "torch"

    def __init__(self, decoder: TorchDecoder, step: DeviceStep | None = None) -> None:
        """`step` runs the passes; see `capture`."""
        self.decoder, self.config, self.device = decoder, decoder.config, str(decoder.device)
        self.adapters: Collection[str] = decoder.named_adapters
        self.step = step or DeviceStep(decoder, lengths=())
        self._head = Head(decoder, ROWS if decoder.device.type == "cuda" else ())
        self._ahead: DenoiseAhead | None = None
        self._latest: PlacedSegment | None = None

    def capture(self) -> None:
        """Run passes in graphs from now on, if there is room for them."""
        decoder, why = self.decoder, ops.why_not(self.decoder.device)
        if why is not None:
            _log.warning("the kernels do not run (%s): torch's operations do (slower, same text)", why)
        free = torch.cuda.mem_get_info(decoder.device)[0]
        try:
            self.step = DeviceStep(decoder, is_fused=why is None)
            captured = self.step.prepare()
            if self.config.kind == "masked":
                self._ahead = DenoiseAhead(decoder, self.step, self._head)
                captured += self._ahead.prepare()
        except torch.OutOfMemoryError as error:
            self.step, self._ahead = DeviceStep(decoder, lengths=()), None
            short = str(error).splitlines()[0]
            _log.warning(
                "no room for graphs on %s, passes are launched one by one (slower, same text): %s", self.device, short
            )
        else:
            taken = free - torch.cuda.mem_get_info(decoder.device)[0]
            _log.info("%d steps captured on %s, %d MB", captured, self.device, taken >> 20)

    def rest(self) -> None:
        self.step.buffer.held, self._latest = [], None
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
    def told_ahead(self, forward: ForwardRequest) -> RowAnswers | None:
        return None if self._ahead is None else self._ahead.told(forward, self._adapted(forward))

    def _adapted(self, forward: ForwardRequest) -> Adapted:
        return forward.is_canvas or (forward.adapter if forward.adapter in self.adapters else False)

    def _read(self, forward: ForwardRequest) -> tuple[Tensor, KeyValueBlock]:
        if self._ahead is not None:
            self._ahead.stop()
        hidden, self._latest = self.step.read(forward, self._adapted(forward))
        return hidden, NO_BLOCK if self._latest is None else self._latest.block

    @torch.no_grad()
    def log_probabilities(self, hidden_RC: Tensor) -> Tensor:
        return self.decoder.logits(hidden_RC).log_softmax(-1)

    @torch.no_grad()
    def answers(self, hidden_WC: Tensor, questions: Sequence[RowQuestion], is_canvas: bool = False) -> list[RowAnswers]:
        return self._head.answers(hidden_WC, questions, is_canvas)

    def kept(self, block: KeyValueBlock) -> KeyValueBlock:
        return KeyValueBlock(block.keys.clone(), block.values.clone())

    @torch.no_grad()
    def rotated(self, block: KeyValueBlock, start: int) -> KeyValueSegment:
        segment = self._latest
        if segment is None or segment.block is not block or segment.start != start:
            segment = PlacedSegment(self.decoder, block, start)
        return KeyValueSegment(segment.keys, segment.values) if self._ahead is None else segment

    @torch.no_grad()
    def side_by_side(self, blocks: Sequence[KeyValueBlock], start: int) -> KeyValueSegment:
        keys, values = (torch.cat(each, 3) for each in zip(*((b.keys, b.values) for b in blocks), strict=True))
        return self.decoder.rotated(KeyValueBlock(keys, values), start)


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
) -> TorchNetwork:
    """The folder's network. Raises ModelNotFound and ModelCorrupt.

    `has_codes`: the layers' weights are held in eight bits.
    """
    torch_device = torch.device(device)
    if device == "cpu":
        torch.set_num_threads(threads)
    decoder = decoder_weights.load(folder, dtype or element_type(torch_device), torch_device, has_codes)
    network = TorchNetwork(decoder)
    if device == "cuda":
        network.capture()
    return network
