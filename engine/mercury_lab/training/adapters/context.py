"""The context of examples: read by the C kernels as the engine reads it, or in padded batches by the network itself.

Dimensions: B examples, T tokens of the longest one.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from mercury_engine.lru import LeastRecentlyUsed
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.network import KeyValueBlock, KeyValueSegment, Packing, join
from torch import Tensor

from mercury_lab.training.adapters.examples import Example, TokenIds
from mercury_lab.training.adapters.kernel_reader import KernelReader
from mercury_lab.training.optimisation.prefill import pad_sides, read_start, side_by_side
from mercury_lab.training.optimisation.ragged import read_runs
from mercury_lab.training.optimisation.sharing import read_blocks, unique

KEPT_BLOCKS = 64
"""Blocks kept: those of a window or two."""

BATCHED_EXAMPLES = 24
"""Examples that a batch reads and differentiates together; their logits take about 3 GB."""

RAGGED_EXAMPLES = 4
"""Examples whose rows share the products on a CPU: 250 rows multiply half as fast again as 60."""


class ContextReading(Protocol):
    """Reads what stands in front of the adapted rows of `per_pass` examples, and then the rows."""

    per_pass: int

    def hidden(self, examples: Sequence[Example]) -> list[Tensor]:
        """Hidden states [n,C], or more, of each example: its markers and its target without the last token."""
        ...


class KernelContexts:
    """Reads contexts one by one with the C kernels, and rows without padding; gaps of one window share their blocks."""

    per_pass = RAGGED_EXAMPLES

    def __init__(self, kernels: KernelReader, decoder: TorchDecoder, start_id: int) -> None:
        self._kernels, self._decoder, self._start_id = kernels, decoder, start_id
        self._start = kernels.read([start_id]).block
        self._blocks = LeastRecentlyUsed[TokenIds, KeyValueBlock](KEPT_BLOCKS)

    def hidden(self, examples: Sequence[Example]) -> list[Tensor]:
        """See `ContextReading.hidden`."""
        runs = [(*each.markers, *each.target[:-1]) for each in examples]
        starts = [len(each.head) for each in examples]
        return read_runs(self._decoder, runs, [self._before(each) for each in examples], starts)[0]

    def _before(self, example: Example) -> KeyValueSegment:
        """Far blocks, which end at position -1, and near lines, which begin at 0."""
        blocks = [self._start, *(self._block(far) for far in example.far)]
        start = -sum(block.tokens for block in blocks)
        before = [self._decoder.side_by_side([self._floats(block) for block in blocks], start)]
        if example.head:
            past = [self._kernels.side_by_side(blocks, start)]
            head = self._kernels.read(example.head, past).block
            before.append(self._decoder.rotated(self._floats(head), 0))
        return join(before)

    def _floats(self, block: KeyValueBlock) -> KeyValueBlock:
        found = self._kernels.tensors(block)
        return KeyValueBlock(found.keys.float(), found.values.float())

    def _block(self, tokens: TokenIds) -> KeyValueBlock:
        return self._blocks.get_or_make(tokens, lambda: self._alone(tokens))

    def _alone(self, tokens: TokenIds) -> KeyValueBlock:
        """A block's keys and values, read after a start token that is then dropped."""
        block = self._kernels.read([self._start_id, *tokens]).block
        return KeyValueBlock(*(np.ascontiguousarray(each[:, :, :, 1:]) for each in (block.keys, block.values)))


class BatchedContexts:
    """Reads many examples in padded batches, by the network in training without its adapter: for GPUs."""

    per_pass = BATCHED_EXAMPLES

    def __init__(self, network: TorchDecoder, start_id: int) -> None:
        self._network, self._start_id = network, start_id

    def hidden(self, examples: Sequence[Example]) -> list[Tensor]:
        """See `ContextReading.hidden`; the states are padded to those of the longest example."""
        ids, packing = rows(examples, self._network.device)
        hidden, _ = self._network.read(ids, self._before(examples), packing=packing, adapted=True)
        return list(hidden)

    @torch.no_grad()
    def _before(self, examples: Sequence[Example]) -> list[KeyValueSegment]:
        """Far blocks and near lines as one segment."""
        blocks = read_blocks(self._network, unique(far for each in examples for far in each.far), self._start_id)
        start = read_start(self._network, self._start_id)
        far = [side_by_side(self._network, [start, *(blocks[b] for b in e.far)], leading=True) for e in examples]
        if not any(each.head for each in examples):
            return [pad_sides(far)]
        ids = padded([each.head for each in examples]).to(self._network.device)
        _, heads = self._network.read(ids, [pad_sides(far)])
        near = [self._first(heads, row, len(each.head)) for row, each in enumerate(examples)]
        return [pad_sides([join([*sides]) for sides in zip(far, near, strict=True)])]

    def _first(self, read: KeyValueBlock, row: int, tokens: int) -> KeyValueSegment:
        """The first tokens of one example's near lines."""
        return self._network.rotated(
            KeyValueBlock(*(each[:, row : row + 1, :, :tokens] for each in (read.keys, read.values))), 0
        )


def rows(examples: Sequence[Example], device: torch.device) -> tuple[Tensor, Packing]:
    """Tokens [B,T] of the adapted rows, the markers and all of each target but its last token, and their positions."""
    ids = padded([(*each.markers, *each.target[:-1]) for each in examples]).to(device)
    heads = torch.tensor([[len(each.head)] for each in examples], device=device)
    place = heads + torch.arange(ids.shape[1], device=device)
    return ids, Packing(torch.zeros_like(ids), place, place)


def padded(runs: Sequence[TokenIds]) -> Tensor:
    """Token ids [B,T], padded on the right, where causal attention makes padding harmless."""
    longest = max(map(len, runs))
    return torch.tensor([[*run, *[0] * (longest - len(run))] for run in runs])
