"""Passes of the reader on a GPU as CUDA graphs: its kernels take longer to launch one by one than to run.

A graph has fixed shapes, so the context lies in one buffer at fixed addresses, its end hidden, and the rows are padded.
There are graphs for short passes after a context, and for blocks of a context: several side by side after the start
token, none of which sees another. On other devices the same code runs without graphs, for tests.

Dimensions as in `network.py`.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from mercury_kernels.capture import Captures
from torch import Tensor

from mercury_engine.models.arrays import IdArray
from mercury_engine.models.decoder import Adapted, TorchDecoder
from mercury_engine.models.network import ForwardRequest, KeyValueBlock, KeyValueSegment, Packing

ROW_BUCKETS = (1, 2, 4, 8, 16)
"""Rows of a short pass: the unread end of a near prefix, accepted tokens and drafts."""

PAST_BUCKETS = (512, 1024, 2048, 4096)
"""Tokens of context in front of them."""

BLOCK_ROW_BUCKETS = (128, 512)
"""Tokens of the blocks of a pass; the cache reads at most as many at once, unless a single block is longer."""

SHAPES = (*((rows, tokens) for rows in ROW_BUCKETS for tokens in PAST_BUCKETS), *((n, 1) for n in BLOCK_ROW_BUCKETS))
"""Rows and tokens of context of all graphs."""

Shape = tuple[int, int]


class Past:
    """The context of the latest pass, in one buffer; segments that stay in their place are not copied again."""

    def __init__(self, decoder: TorchDecoder, tokens: int) -> None:
        config = decoder.config
        shape = config.num_hidden_layers, 1, config.num_key_value_heads, tokens, config.head_dim
        self.keys, self.values = (decoder.embedding.new_zeros(shape) for _ in range(2))
        self._held: list[KeyValueSegment] = []

    def hold(self, segments: Sequence[KeyValueSegment]) -> None:
        """Put the segments side by side at the start of the buffer."""
        same, start = True, 0
        for number, segment in enumerate(segments):
            tokens = segment.keys.shape[3]
            same = same and number < len(self._held) and self._held[number] is segment
            if not same:
                self.keys[:, :, :, start : start + tokens].copy_(segment.keys)
                self.values[:, :, :, start : start + tokens].copy_(segment.values)
            start += tokens
        self._held = [*segments]

    def first(self, tokens: int, seen: Tensor) -> KeyValueSegment:
        """The first tokens of the buffer, of which `seen` [1] are shown."""
        hidden = torch.arange(tokens, device=seen.device) >= seen
        bias = torch.zeros(tokens, device=seen.device).masked_fill(hidden, float("-inf"))[None, None, None]
        return KeyValueSegment(self.keys[:, :, :, :tokens], self.values[:, :, :, :tokens], bias)


class GraphedReader:
    """Reads passes of these shapes, one request at a time."""

    def __init__(self, decoder: TorchDecoder) -> None:
        self._decoder = decoder
        self._past, self._start = Past(decoder, PAST_BUCKETS[-1]), Past(decoder, 1)
        self._captures = Captures(decoder.device)
        self._seen = torch.zeros(1, dtype=torch.long, device=decoder.device)
        self._inputs = torch.zeros(3, BLOCK_ROW_BUCKETS[-1], dtype=torch.long, device=decoder.device)
        """Of every row its token, its block and its position."""
        self._outputs: dict[tuple[Shape, Adapted], tuple[Tensor, KeyValueBlock]] = {}

    def prepare(self) -> None:
        """Capture a graph of every shape, so that no request has to wait for it; with adapters at their first pass."""
        for shape in SHAPES:
            self._captures.prepare((shape, False), partial(self._run, shape, False))

    def read(self, forward: ForwardRequest, adapted: Adapted = False) -> tuple[Tensor, KeyValueBlock] | None:
        """Hidden states [T,C] and the block of the rows; None for a pass of another kind or beyond the buckets."""
        rows, seen = forward.rows, sum(segment.keys.shape[3] for segment in forward.past)
        is_block = forward.packing is not None
        fitting = [each for each in SHAPES if each[0] >= rows and each[1] >= seen and (each[1] == 1) == is_block]
        if not fitting or not seen or any(segment.bias is not None for segment in forward.past):
            return None
        if is_block and forward.start != 1:
            return None
        shape = fitting[0]
        self._captures.prepare((shape, adapted), partial(self._run, shape, adapted))
        (self._start if is_block else self._past).hold(forward.past)
        self._seen.fill_(seen)
        self._inputs[:, : shape[0]].copy_(torch.from_numpy(_rows(forward, shape[0])))
        self._captures.run((shape, adapted))
        hidden, block = self._outputs[shape, adapted]
        kept = (each[:, :, :, :rows].clone() for each in (block.keys, block.values))
        return hidden[0, :rows].clone(), KeyValueBlock(*kept)

    def _run(self, shape: Shape, adapted: Adapted) -> None:
        """The captured work: from the inputs and the buffer to the outputs, all at fixed addresses."""
        rows, tokens = shape
        ids, block, place = self._inputs[:, None, :rows]
        past = (self._start if tokens == 1 else self._past).first(tokens, self._seen)
        packing = Packing(block, place, place)
        self._outputs[shape, adapted] = self._decoder.read(ids, [past], packing=packing, adapted=adapted)


def _rows(forward: ForwardRequest, padded: int) -> IdArray:
    """Token, block and position of every row [3,padded]; each row of the padding is a block of its own."""
    packing, rows = forward.packing, forward.rows
    given = np.zeros((3, padded), np.int64)
    given[1] = -1 - np.arange(padded)
    block, place = (0, np.arange(rows)) if packing is None else (packing.canvas[0], packing.place[0])
    given[0, :rows], given[1, :rows], given[2, :rows] = forward.ids_T, block, place + forward.start
    return given
