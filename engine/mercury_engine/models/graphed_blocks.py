"""Blocks of a context on a GPU as CUDA graphs: several side by side after the start token, none of which sees another.

A pass of the plain network takes as long to launch for one block as for many; in a graph it takes one launch. The rows
are padded to few shapes, and each row of the padding is a block of its own. On other devices the same code runs without
graphs, for tests.

Dimensions as in `network.py`.
"""

from functools import partial

import numpy as np
import torch
from mercury_kernels.capture import Captures
from torch import Tensor

from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.network import ForwardRequest, KeyValueBlock, KeyValueSegment, Packing

ROW_BUCKETS = (128, 512)
"""Tokens of the blocks of a pass; the cache reads at most as many at once, unless a single block is longer."""


class GraphedBlocks:
    """Reads packed blocks, one request at a time."""

    def __init__(self, decoder: TorchDecoder) -> None:
        config, longest = decoder.config, ROW_BUCKETS[-1]
        shape = config.num_hidden_layers, 1, config.num_key_value_heads, 1, config.head_dim
        self._decoder = decoder
        self._start = KeyValueSegment(*(decoder.embedding.new_zeros(shape) for _ in range(2)))
        self._inputs = torch.zeros(3, longest, dtype=torch.long, device=decoder.device)
        """Of every row its token, its block and its place there."""
        self._captures = Captures(decoder.device, len(ROW_BUCKETS))
        self._outputs: dict[int, tuple[Tensor, KeyValueBlock]] = {}

    def prepare(self) -> None:
        """Capture a graph of every shape, so that no request has to wait for it."""
        for rows in ROW_BUCKETS:
            self._prepare(rows)

    def read(self, forward: ForwardRequest) -> tuple[Tensor, KeyValueBlock] | None:
        """Hidden states [T,C] and the block of the rows; None for a pass of another kind or beyond the buckets."""
        if forward.packing is None or forward.rows > ROW_BUCKETS[-1] or not _is_behind_start(forward):
            return None
        tokens = forward.rows
        rows = next(bucket for bucket in ROW_BUCKETS if bucket >= tokens)
        self._prepare(rows)
        given = np.zeros((3, rows), np.int64)
        given[1] = -1 - np.arange(rows)  # the padding
        given[:, :tokens] = forward.ids_T, forward.packing.canvas[0], forward.packing.place[0]
        self._inputs[:, :rows].copy_(torch.from_numpy(given))
        self._start.keys.copy_(forward.past[0].keys)
        self._start.values.copy_(forward.past[0].values)
        self._captures.run(rows)
        hidden, block = self._outputs[rows]
        kept = (each[:, :, :, :tokens].clone() for each in (block.keys, block.values))
        return hidden[0, :tokens].clone(), KeyValueBlock(*kept)

    def _prepare(self, rows: int) -> None:
        self._captures.prepare(rows, partial(self._run, rows))

    def _run(self, rows: int) -> None:
        """The captured work: from the inputs and the start token to the outputs, all at fixed addresses."""
        ids, block, place = self._inputs[:, None, :rows]
        self._outputs[rows] = self._decoder.read(ids, [self._start], 1, Packing(block, place, place))


def _is_behind_start(forward: ForwardRequest) -> bool:
    """Whether the rows follow a single token that they all see."""
    past = forward.past
    return forward.start == 1 and len(past) == 1 and past[0].keys.shape[3] == 1 and past[0].bias is None
