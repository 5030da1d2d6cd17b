"""Passes of fixed shape, captured as CUDA graphs: launched one by one, a pass takes longer to launch than to run.

What rows see lies in one buffer of keys and values: segments of context side by side, and behind them the rows' own.
Segments that stay in their place are not copied again; what a pass added is overwritten by the next. One step serves
causal reading, blocks and canvases (`rows.Rows` says who sees what). On a CPU it runs without graphs, for tests.

Dimensions as in `network.py`.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import torch
from mercury_kernels.capture import Captures
from torch import Tensor

from mercury_engine.device.answers import staged
from mercury_engine.device.fused import FusedLayers
from mercury_engine.device.layers import TorchLayers
from mercury_engine.device.rows import UNSEEN, Rows
from mercury_engine.models.arrays import IdArray
from mercury_engine.models.decoder import Adapted, TorchDecoder
from mercury_engine.models.network import (
    CanvasForward,
    ForwardRequest,
    KeyValueBlock,
    KeyValueSegment,
    Packing,
    packed,
)

ROWS = (16, 32, 64)
"""Rows of a step; a GPU takes about as long for 16 as for one."""

LONG_ROWS = (128, 512)
"""Rows of steps that read context, by torch's operations: for many rows its products are faster than ours."""

KEYS = (512, 1024, 4096)
"""Keys that a step sees, its own among them."""

MEMORY_SHARE = 8
"""The keys take at most one part in so many of the memory that is free; those of the shortest step always."""

CONTIGUOUS = torch.contiguous_format

_log = logging.getLogger(__name__)


class Shape(NamedTuple):
    """What a graph is captured for."""

    rows: int
    keys: int
    adapted: Adapted


class Held(NamedTuple):
    """A segment in the buffer, its keys turned by so many positions."""

    segment: KeyValueSegment
    turn: int = 0

    @property
    def tokens(self) -> int:
        return int(self.segment.values.shape[3])


@dataclass(slots=True)
class PlacedBlock(KeyValueBlock):
    """The block of a pass whose first row had position `start`, and its segment there."""

    segment: KeyValueSegment
    start: int


class PlacedSegment(KeyValueSegment):
    """A block whose first row has position `start`; its keys are rotated once they are needed."""

    def __init__(self, decoder: TorchDecoder, block: KeyValueBlock, start: int) -> None:
        self.block, self.start, self.values, self._decoder = block, start, block.values, decoder

    @cached_property
    def keys(self) -> Tensor:
        return self._decoder.rotated(self.block, self.start).keys


class DeviceStep:
    """Runs the passes that fit, one at a time."""

    def __init__(self, decoder: TorchDecoder, is_fused: bool = False) -> None:
        """`is_fused`: layers run in our kernels."""
        config, self._decoder = decoder.config, decoder
        self._lengths = _affordable(decoder)
        longest = self._lengths[-1]
        self.sizes = [(rows, keys) for rows in (*ROWS, *LONG_ROWS) for keys in self._lengths if rows < keys]
        self._long = TorchLayers(decoder, longest)
        self._layers: FusedLayers | TorchLayers = FusedLayers(decoder, longest) if is_fused else self._long
        shape = config.num_hidden_layers, config.num_key_value_heads, longest, config.head_dim
        self.keys, self._values = (decoder.embedding.new_zeros(shape) for _ in range(2))
        self._held: list[Held] = []
        self._captures = Captures[Shape, tuple[Tensor, Tensor, Tensor]](decoder.device)
        self.inputs = torch.zeros(6 * self.sizes[-1][0], dtype=torch.long, device=decoder.device)
        """The fields of `Rows`, of a step's rows each."""

    @torch.no_grad()
    def prepare(self) -> None:
        """Capture a graph of every shape, so that no request waits for it; of a named adapter at its first pass."""
        free = free_bytes(self._decoder.device)
        for adapted in (False, True)[: 1 + (self._decoder.config.adapter_rank > 0)]:
            for rows, keys in self.sizes:
                if not adapted or rows <= ROWS[-1]:
                    self._capture(Shape(rows, keys, adapted))
        taken = free - free_bytes(self._decoder.device)
        _log.info("%d steps captured on %s, %d MB", len(self.shapes), self._decoder.device, taken >> 20)

    @property
    def shapes(self) -> list[Shape]:
        """Those that are captured."""
        return [*self._captures]

    @torch.no_grad()
    def replay(self, shape: Shape) -> None:
        """Run a step over rows of zeros, to time it."""
        self.clear()
        self._captures.run(shape)

    @property
    def held(self) -> int:
        """Number of tokens of the segments that the buffer holds copies of."""
        return sum(each.tokens for each in self._held)

    def release(self) -> None:
        """Let go of those segments."""
        self._held = []

    def let_go(self) -> None:
        """Let go of the last of them, for another writes its keys."""
        self._held.pop()

    def read(self, forward: ForwardRequest, adapted: Adapted) -> tuple[Tensor, KeyValueBlock] | None:
        """See `Network.read_together`; None for what fits no shape."""
        if (shape := self.load(forward, adapted)) is None:
            return None
        hidden, *own = self._captures.run(shape)
        rows, at = forward.rows, self.held
        keys, values = (each[:, None, :rows].transpose(2, 3).clone(memory_format=CONTIGUOUS) for each in own)
        block = KeyValueBlock(keys, values)
        if forward.packing is None:
            turned = self.keys[:, None, :, at : at + rows].clone()
            block = PlacedBlock(keys, values, KeyValueSegment(turned, values), forward.start)
        return hidden[:rows].clone(), block

    def denoise(self, forward: CanvasForward) -> Tensor | None:
        """See `Network.denoise_together`; None for what fits no shape, and for canvases of different lengths."""
        if (shape := self.load(forward, True)) is None:
            return None
        return self._captures.run(shape)[0][: forward.rows].clone()

    def load(self, forward: ForwardRequest | CanvasForward, adapted: Adapted) -> Shape | None:
        """Make the inputs those of a forward; None for more rows or keys than there are shapes for."""
        if isinstance(forward, ForwardRequest):
            given = _rows(forward.ids_T, forward.packing, forward.start, forward.block)
            held = [*map(Held, forward.past)]
        else:
            lengths = {forward.rows} if forward.packing is None else {*forward.packing.rows[0].tolist()}
            if len(lengths) > 1:
                return None
            away = forward.end + lengths.pop()  # where the suffix frame begins, seen from the prefix frame
            given = _rows(forward.ids_R, forward.packing, forward.end, None)
            held = [*map(Held, forward.before), *(Held(each, away) for each in forward.after)]
        rows, seen = given.shape[1], sum(each.tokens for each in held)
        fitting = (Shape(r, t, adapted) for r, t in self.sizes if r >= rows and t >= seen + r)
        shape = next(fitting, None)
        if shape is None or given[1].max() >= self._lengths[-1]:
            return None
        self._capture(shape)
        self._hold(held)
        padded = np.zeros((6, shape.rows), np.int64)
        padded[1] = np.minimum(given[1, 0] + np.arange(shape.rows), self._lengths[-1] - 1)  # of rows that a rule adds
        padded[:5, :rows], padded[5] = given, seen
        padded[2, rows:], padded[3:5, rows:] = UNSEEN, given[3:, :1]  # padding sees what the first row does
        self.inputs[: padded.size].copy_(staged(padded.reshape(-1), self.inputs.device), non_blocking=True)
        return shape

    def _capture(self, shape: Shape) -> None:
        if shape not in self._captures:
            self.clear()
            self._captures.prepare(shape, partial(self.forward, shape))

    def clear(self) -> None:
        """Make the inputs valid for every shape: rows of zeros, which overwrite the first keys."""
        self.inputs.zero_()
        self.release()

    def forward(self, shape: Shape) -> tuple[Tensor, Tensor, Tensor]:
        """From the inputs and the buffer, both at fixed addresses, to hidden states and the rows' keys and values."""
        ids, positions, order, first, limit, held = self.inputs[: 6 * shape.rows].view(6, -1)
        rows = Rows(ids, positions, order, first, limit, held[0])
        keys, values = self.keys[:, :, : shape.keys], self._values[:, :, : shape.keys]
        layers = self._layers if shape.rows <= ROWS[-1] else self._long
        return layers.forward(rows, keys, values, shape.adapted)

    def _hold(self, sides: Sequence[Held]) -> None:
        """Put the segments side by side at the start of the buffer."""
        same, start = True, 0
        for number, each in enumerate(sides):
            earlier = self._held[number] if number < len(self._held) else None
            same = same and earlier is not None and earlier.segment is each.segment and earlier.turn == each.turn
            if not same:
                part = slice(start, start + each.tokens)
                self.keys[:, :, part].copy_(self._turned(each)[:, 0])
                self._values[:, :, part].copy_(each.segment.values[:, 0])
            start += each.tokens
        self._held = [*sides]

    def _turned(self, side: Held) -> Tensor:
        """The segment's keys, turned."""
        keys: Tensor = side.segment.keys
        if not side.turn:
            return keys
        position = torch.full((1,), side.turn, device=keys.device)
        return self._decoder.placed(KeyValueBlock(keys, side.segment.values), position).keys


def _rows(ids_R: IdArray, packing: Packing | None, start: int, block: int | None) -> IdArray:
    """Token, position, order, first and limit of every row [5,R]; see `rows.Rows` and `ForwardRequest`."""
    packing = packing or packed([ids_R.tolist()])[1]
    run, place = packing.canvas[0], packing.place[0]
    reach = len(ids_R) + 1
    order = run * reach + 1 + (0 if block is None else place // block)
    return np.stack((ids_R, start + place, order, run * reach + 1, order))


def _affordable(decoder: TorchDecoder) -> list[int]:
    """The numbers of keys whose buffer takes at most one part in MEMORY_SHARE of a GPU's free memory."""
    config = decoder.config
    token = 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * decoder.embedding.itemsize
    limit = free_bytes(decoder.device) // MEMORY_SHARE if decoder.device.type == "cuda" else KEYS[-1] * token
    return [KEYS[0], *(keys for keys in KEYS[1:] if keys * token <= limit)]


def free_bytes(device: torch.device) -> int:
    """Of a GPU; 0 for a CPU."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 0
