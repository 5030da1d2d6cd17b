"""The context of an example, read by the C kernels as the engine reads it.

Dimensions: T tokens.
"""

import numpy as np
import torch

from mercury_engine.lru import LeastRecentlyUsed
from mercury_engine.models.decoder import Decoder
from mercury_engine.models.network import KeyValueBlock, KeyValueSegment
from mercury_engine.training.adapters.examples import Example, TokenIds
from mercury_engine.training.drafting.kernel_reader import KernelReader

KEPT_BLOCKS = 64
"""Blocks kept: those of a window or two."""


class ExampleReader:
    """Reads the blocks and the near lines of examples; gaps of one window share their blocks."""

    def __init__(self, kernels: KernelReader, decoder: Decoder, start_id: int) -> None:
        self._kernels, self._decoder, self._start_id = kernels, decoder, start_id
        self._start = kernels.read([start_id]).block
        self._blocks = LeastRecentlyUsed[TokenIds, KeyValueBlock](KEPT_BLOCKS)

    def read(self, example: Example) -> list[KeyValueSegment]:
        """The segments in front of the adapted rows: the far blocks, which end at position -1, and the near lines."""
        blocks = [self._start, *(self._block(far) for far in example.far)]
        start = -sum(block.tokens for block in blocks)
        before = [self._decoder.side_by_side([self._floats(block) for block in blocks], start)]
        if example.head:
            past = [self._kernels.side_by_side(blocks, start)]
            head = self._kernels.read(example.head, past).block
            before.append(self._decoder.rotated(self._floats(head), 0))
        return before

    def _floats(self, block: KeyValueBlock) -> KeyValueBlock:
        found = self._kernels.tensors(block)
        return KeyValueBlock(found.keys.float(), found.values.float())

    def _block(self, tokens: TokenIds) -> KeyValueBlock:
        return self._blocks.get_or_make(tokens, lambda: self._alone(tokens))

    def _alone(self, tokens: TokenIds) -> KeyValueBlock:
        """A block's keys and values, read behind a start token that is then dropped."""
        block = self._kernels.read([self._start_id, *tokens]).block
        return KeyValueBlock(*(np.ascontiguousarray(each[:, :, :, 1:]) for each in (block.keys, block.values)))


def rows(example: Example) -> torch.Tensor:
    """Tokens [1,T] of the adapted rows: the markers and all of the target but its last token."""
    return torch.tensor([[*example.markers, *example.target[:-1]]])
