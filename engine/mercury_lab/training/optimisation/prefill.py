"""Prefill in training: many blocks are read in one batch, and the sides of several gaps are padded to one batch."""

from collections.abc import Sequence

import torch
from mercury_engine.kv_cache.cache import without_start
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.network import KeyValueBlock, KeyValueSegment
from torch import Tensor


@torch.no_grad()
def read_alone(decoder: TorchDecoder, blocks: Sequence[tuple[int, ...]], start_id: int) -> list[KeyValueBlock]:
    """The block of each text, read in one padded batch (causal attention makes padding harmless)."""
    longest = max(map(len, blocks))
    ids = [[start_id, *b, *[start_id] * (longest - len(b))] for b in blocks]
    _, read = decoder.read(torch.tensor(ids, device=decoder.device))
    return [
        without_start(KeyValueBlock(*(each[:, i : i + 1, :, : 1 + len(b)] for each in (read.keys, read.values))))
        for i, b in enumerate(blocks)
    ]


@torch.no_grad()
def read_start(decoder: TorchDecoder, start_id: int) -> KeyValueBlock:
    """The block of the start token, read alone."""
    return decoder.read(torch.tensor([[start_id]], device=decoder.device))[1]


def side_by_side(decoder: TorchDecoder, blocks: list[KeyValueBlock], leading: bool) -> KeyValueSegment:
    """One side of adjacent blocks, ending at position -1 of its frame (leading) or starting at 0."""
    return decoder.side_by_side(blocks, -sum(block.tokens for block in blocks) if leading else 0)


def pad_sides(sides: list[KeyValueSegment]) -> KeyValueSegment:
    """Sides of several requests [L,1,H,T,D] as one batch, padded on the right, with the padding hidden."""
    longest = max(side.keys.shape[3] for side in sides)
    bias = torch.zeros(len(sides), 1, 1, longest, device=sides[0].keys.device)
    for row, side in enumerate(sides):
        bias[row, ..., side.keys.shape[3] :] = float("-inf")

    def padded(tensors: list[Tensor]) -> Tensor:
        pad = torch.nn.functional.pad
        return torch.cat([pad(t, (0, 0, 0, longest - t.shape[3])) for t in tensors], 1)

    return KeyValueSegment(padded([s.keys for s in sides]), padded([s.values for s in sides]), bias)
