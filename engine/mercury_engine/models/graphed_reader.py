"""Short passes of the reader on a GPU as CUDA graphs: its kernels take longer to launch one by one than to run.

A graph has fixed shapes, so the context lies in one buffer at fixed addresses, its end hidden, and the rows are padded.
On other devices the same code runs without graphs, for tests.

Dimensions as in `network.py`.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from mercury_kernels.capture import Captures
from torch import Tensor

from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.network import ForwardRequest, KeyValueBlock, KeyValueSegment, Packing

ROW_BUCKETS = (1, 2, 4, 8, 16)
"""Rows of a pass: the unread end of a near prefix, accepted tokens and drafts."""

PAST_BUCKETS = (512, 1024, 2048, 4096)
"""Tokens of context in front of them."""

Shape = tuple[int, int]
"""Rows and tokens of context of a graph."""


class Past:
    """The context of the latest pass, in one buffer; segments that stay in their place are not copied again."""

    def __init__(self, decoder: TorchDecoder, tokens: int) -> None:
        config = decoder.config
        shape = config.num_hidden_layers, 1, config.num_key_value_heads, tokens, config.head_dim
        self.keys, self.values = (decoder.embedding.new_zeros(shape) for _ in range(2))
        self.copied = 0
        """Number of segments copied so far."""
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
                self.copied += 1
            start += tokens
        self._held = [*segments]

    def first(self, tokens: int, seen: Tensor) -> KeyValueSegment:
        """The first tokens of the buffer, of which `seen` [1] are shown."""
        hidden = torch.arange(tokens, device=seen.device) >= seen
        bias = torch.zeros(tokens, device=seen.device).masked_fill(hidden, float("-inf"))[None, None, None]
        return KeyValueSegment(self.keys[:, :, :, :tokens], self.values[:, :, :, :tokens], bias)


class GraphedReader:
    """Reads a few tokens after a context, one request at a time."""

    def __init__(self, decoder: TorchDecoder) -> None:
        self._decoder = decoder
        self._past = Past(decoder, PAST_BUCKETS[-1])
        self._captures = Captures(decoder.device, len(ROW_BUCKETS) * len(PAST_BUCKETS))
        self._inputs = torch.zeros(2 + ROW_BUCKETS[-1], dtype=torch.long, device=decoder.device)
        """The first position, the tokens of context, and the ids of the rows."""
        self._outputs: dict[Shape, tuple[Tensor, KeyValueBlock]] = {}

    @property
    def copied(self) -> int:
        """Number of segments of context that were copied so far."""
        return self._past.copied

    def prepare(self) -> None:
        """Capture a graph of every shape, so that no request has to wait for it."""
        for rows in ROW_BUCKETS:
            for tokens in PAST_BUCKETS:
                self._prepare((rows, tokens))

    def read(self, forward: ForwardRequest) -> tuple[Tensor, KeyValueBlock] | None:
        """Hidden states [T,C] and the block of the rows; None for a pass of another kind or beyond the buckets."""
        rows, seen = forward.rows, sum(segment.keys.shape[3] for segment in forward.past)
        if forward.packing is not None or any(segment.bias is not None for segment in forward.past):
            return None
        if not 0 < seen <= PAST_BUCKETS[-1] or rows > ROW_BUCKETS[-1]:
            return None
        shape = _covering(ROW_BUCKETS, rows), _covering(PAST_BUCKETS, seen)
        self._prepare(shape)
        self._past.hold(forward.past)
        self._inputs[: 2 + rows].copy_(torch.from_numpy(np.array([forward.start, seen, *forward.ids_T])))
        self._captures.run(shape)
        hidden, block = self._outputs[shape]
        kept = (each[:, :, :, :rows].clone() for each in (block.keys, block.values))
        return hidden[0, :rows].clone(), KeyValueBlock(*kept)

    def _prepare(self, shape: Shape) -> None:
        self._captures.prepare(shape, partial(self._run, shape))

    def _run(self, shape: Shape) -> None:
        """The captured work: from the inputs and the buffer to the outputs, all at fixed addresses."""
        rows, tokens = shape
        start, seen, ids = self._inputs[:1], self._inputs[1:2], self._inputs[2 : 2 + rows]
        place = (start + torch.arange(rows, device=ids.device))[None]
        packing = Packing(torch.zeros_like(place), place, place)
        past = [self._past.first(tokens, seen)]
        self._outputs[shape] = self._decoder.read(ids[None], past, packing=packing)


def _covering(buckets: Sequence[int], count: int) -> int:
    return next(bucket for bucket in buckets if bucket >= count)
