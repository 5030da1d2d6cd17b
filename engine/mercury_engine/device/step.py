"""Passes over a buffer of keys, those of fixed shape captured as CUDA graphs.

Launched one by one, the operations of a pass take longer to launch than to run. So passes that fit one of the shapes
share a buffer and inputs at fixed addresses. Segments of context that stay in their place are not copied again; what a
pass adds is overwritten by the next. Other passes, and all on a CPU, get a buffer of their own.

Dimensions as in `network.py`.
"""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import torch
from mercury_kernels import ops, reference
from mercury_kernels.capture import Captures
from mercury_kernels.operands import UNSEEN, Rows
from torch import Tensor

from mercury_engine.device.answers import sent, staged
from mercury_engine.models.arrays import IdArray
from mercury_engine.models.decoder import Adapted, TorchDecoder
from mercury_engine.models.network import ForwardRequest, KeyValueBlock, KeyValueSegment
from mercury_engine.text.common_prefix import common_prefix

ROWS = (16, 32, 64)
"""Rows of a step; a GPU takes about as long for 16 as for one."""

LONG_ROWS = (128, 512)
"""Rows of steps that read context, by torch's operations: for many rows its products are faster than ours."""

KEYS = (512, 1024, 4096)
"""Keys that a step sees, its own among them."""

MEMORY_SHARE = 8
"""The buffer takes at most this fraction of the free memory, 1 / MEMORY_SHARE; the smallest one is always made."""


class Shape(NamedTuple):
    """The key of a graph."""

    rows: int
    keys: int
    adapted: Adapted


Held = tuple[KeyValueSegment, int]
"""A segment, and the positions by which its keys are rotated in a buffer."""


class PlacedSegment(KeyValueSegment):
    """The segment of a block whose first token has position `start`; its keys are rotated when they are needed."""

    def __init__(self, decoder: TorchDecoder, block: KeyValueBlock, start: int) -> None:
        self.block, self.start, self.values, self._decoder = block, start, block.values, decoder

    @cached_property
    def keys(self) -> Tensor:
        return self._decoder.rotated(self.block, self.start).keys


class Buffer:
    """Keys and values [L,H,T,D]: segments of context side by side, then the rows of a pass."""

    def __init__(self, decoder: TorchDecoder, tokens: int) -> None:
        config, self._decoder = decoder.config, decoder
        shape = config.num_hidden_layers, config.num_key_value_heads, tokens, config.head_dim
        self.keys, self.values = (decoder.embedding.new_zeros(shape) for _ in range(2))
        self.held: list[Held] = []

    @property
    def context(self) -> int:
        """Number of tokens in the segments."""
        return sum(segment.tokens for segment, _ in self.held)

    def hold(self, sides: Sequence[Held]) -> None:
        """Make the context these segments; those that stand there already are not copied."""
        same, start = common_prefix(self.held, sides), 0
        for number, (segment, turn) in enumerate(sides):
            part = slice(start, start + segment.tokens)
            if number >= same:
                keys: Tensor = segment.keys
                if turn:
                    angles = self._decoder.angles(torch.full((1,), turn, device=keys.device))
                    keys = reference.rotate(keys, *angles)
                self.keys[:, :, part].copy_(keys[:, 0])
                self.values[:, :, part].copy_(segment.values[:, 0])
            start = part.stop
        self.held = [*sides]

    def read(self, own: Tensor, forward: ForwardRequest) -> PlacedSegment:
        """The segment of the rows of a pass, and its block; `own`: their keys [L,R,H,D] before rotation."""
        part = slice(self.context, self.context + forward.rows)
        values = self.values[:, None, :, part].clone()
        keys = own[:, None, : forward.rows].transpose(2, 3).clone(memory_format=torch.contiguous_format)
        segment = PlacedSegment(self._decoder, KeyValueBlock(keys, values), forward.start)
        if not forward.runs:
            segment.keys = self.keys[:, None, :, part].clone()
        return segment


class DeviceStep:
    """Runs passes one at a time."""

    def __init__(self, decoder: TorchDecoder, is_fused: bool = False, lengths: Sequence[int] | None = None) -> None:
        """`is_fused`: layers run in our kernels. `lengths`: keys of the shapes, None for all that memory allows."""
        lengths = _affordable(decoder) if lengths is None else lengths
        longest, self._decoder, self._is_fused = max(lengths, default=0), decoder, is_fused
        self.sizes = [(rows, keys) for rows in (*ROWS, *LONG_ROWS) for keys in lengths if rows < keys]
        self.buffer = Buffer(decoder, longest)
        self.angles = decoder.angles(torch.arange(longest, device=decoder.device))
        """Cosines and sines of all positions that rows of the shapes may have."""
        self._captures = Captures[Shape, tuple[Tensor, Tensor]](decoder.device)
        most = max((rows for rows, _ in self.sizes), default=0)
        self.inputs = torch.zeros(5 * most, dtype=torch.long, device=decoder.device)
        """The token, position, order, first and context of every row of a shape, see `Rows`."""

    @torch.no_grad()
    def prepare(self) -> int:
        """Capture a graph of every shape, so that no request waits for it; of a named adapter at its first pass.

        Returns their number.
        """
        for adapted in (False, True)[: 1 + (self._decoder.config.adapter_rank > 0)]:
            for rows, keys in self.sizes:
                if not adapted or rows <= ROWS[-1]:
                    self._capture(Shape(rows, keys, adapted))
        return len(self.shapes)

    @property
    def shapes(self) -> list[Shape]:
        """The captured ones."""
        return [*self._captures]

    @torch.no_grad()
    def replay(self, shape: Shape) -> None:
        """Run a step over rows of zeros, to time it."""
        self.clear()
        self._captures.run(shape)

    def read(self, forward: ForwardRequest, adapted: Adapted) -> tuple[Tensor, PlacedSegment | None]:
        """Hidden states [R,C], and the rows' segment, None for a canvas; see `Network.read_together`."""
        hidden, own, buffer = self._run(forward, adapted)
        return hidden, None if forward.is_canvas else buffer.read(own, forward)

    def _run(self, forward: ForwardRequest, adapted: Adapted) -> tuple[Tensor, Tensor, Buffer]:
        if (shape := self.load(forward, adapted)) is not None:
            hidden, own = self._captures.run(shape)
            return hidden[: forward.rows].clone(), own, self.buffer
        numbers, sides = _inputs(forward)
        decoder, context = self._decoder, sum(segment.tokens for segment, _ in sides)
        buffer = Buffer(decoder, context + forward.rows)
        buffer.hold(sides)
        ids, position, order, first = sent(numbers, decoder.device)
        place = torch.arange(forward.rows, device=decoder.device)
        rows = Rows(place, order, first, torch.full((), context, device=decoder.device), *decoder.angles(position))
        return *decoder(ids, rows, buffer.keys, buffer.values, adapted), buffer

    def load(self, forward: ForwardRequest, adapted: Adapted) -> Shape | None:
        """Make the inputs those of a forward; None if it fits no shape."""
        numbers, sides = _inputs(forward)
        rows, context = forward.rows, sum(segment.tokens for segment, _ in sides)
        fitting = (Shape(r, t, adapted) for r, t in self.sizes if r >= rows and t >= context + r)
        shape, positions = next(fitting, None), len(self.angles[0])
        if shape is None or numbers[1].max() >= positions:
            return None
        self._capture(shape)
        self.buffer.hold(sides)
        padded = np.zeros((5, shape.rows), np.int64)
        padded[1] = np.minimum(numbers[1, 0] + np.arange(shape.rows), positions - 1)  # of rows that a rule adds
        padded[2, rows:], padded[3], padded[4] = UNSEEN, numbers[3, 0], context
        padded[:4, :rows] = numbers
        self.inputs[: padded.size].copy_(staged(padded.reshape(-1), self.inputs.device), non_blocking=True)
        return shape

    def _capture(self, shape: Shape) -> None:
        if shape not in self._captures:
            self.clear()
            self._captures.prepare(shape, partial(self.forward, shape))

    def clear(self) -> None:
        """Make the inputs valid for every shape: rows of zeros, which overwrite the first keys."""
        self.inputs.zero_()
        self.buffer.held = []

    def forward(self, shape: Shape) -> tuple[Tensor, Tensor]:
        """From the inputs and the buffer to hidden states, and the rows' keys before rotation."""
        ids, position, order, first, context = self.inputs[: 5 * shape.rows].view(5, -1)
        rows, buffer = Rows(position, order, first, context[0], *self.angles), self.buffer
        by = ops if self._is_fused and shape.rows <= ROWS[-1] else reference
        keys, values = buffer.keys[:, :, : shape.keys], buffer.values[:, :, : shape.keys]
        return self._decoder.forward(ids, rows, keys, values, shape.adapted, by)


def _inputs(forward: ForwardRequest) -> tuple[IdArray, list[Held]]:
    """Token, position, order and first of every row [4,R], and the segments that they see."""
    lengths, place_R, sides = forward.lengths, forward.place_T, [(each, 0) for each in forward.past]
    if forward.after:
        [length] = {*lengths}
        sides += [(each, forward.start + length) for each in forward.after]  # seen from the prefix's frame
    first_R = np.repeat(np.arange(len(lengths)), lengths) * forward.rows + 1
    order_R = first_R + (0 if forward.block is None else place_R // forward.block)
    return np.stack((forward.ids_T, forward.start + place_R, order_R, first_R)), sides


def _affordable(decoder: TorchDecoder) -> list[int]:
    """The numbers of keys whose buffer fits its share of a GPU's free memory."""
    config = decoder.config
    token = 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * decoder.embedding.itemsize
    is_cuda = decoder.device.type == "cuda"
    limit = torch.cuda.mem_get_info(decoder.device)[0] // MEMORY_SHARE if is_cuda else KEYS[-1] * token
    return [KEYS[0], *(keys for keys in KEYS[1:] if keys * token <= limit)]
