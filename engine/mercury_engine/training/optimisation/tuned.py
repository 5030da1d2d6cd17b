"""The network of a reader in training, and its loss on passages.

Dimensions: P predicted tokens, C width.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from mercury_engine.kv_cache.cache import TokenIds
from mercury_engine.models import decoder_weights, weights
from mercury_engine.models.decoder import Decoder, PositionFrames
from mercury_engine.models.network import KeyValueBlock, KeyValueSegment
from mercury_engine.training.examples.passages import Passage
from mercury_engine.training.optimisation.prefill import pad_sides, read_start, side_by_side
from mercury_engine.training.optimisation.run import move_for_training
from mercury_engine.training.optimisation.sharing import read_blocks, unique


class TunedReader(Decoder):
    """A reader in training: its prefill applies the low-rank change."""

    def run(
        self,
        x_BRC: Tensor,
        frames: PositionFrames,
        before: Sequence[KeyValueSegment],
        after: Sequence[KeyValueSegment],
        adapted: bool,
    ) -> tuple[Tensor, KeyValueBlock | None]:
        return super().run(x_BRC, frames, before, after, adapted=True)


def fresh_reader(base: Path, rank: int, device: torch.device) -> TunedReader:
    """The base with a low-rank change that is still zero; for its dtypes see `move_for_training`."""
    network = TunedReader(replace(weights.read_config(base), adapter_rank=rank))
    decoder_weights.fill_reader(network, base)
    network.length = None
    network.markers.requires_grad_(False)
    move_for_training(network, device)
    return network


def passage_nats(network: Decoder, passages: Sequence[Passage], start_id: int) -> Tensor:
    """Nats [P] of every near token except the first of each passage; blocks are prefilled without gradients."""
    rows: list[Tensor] = []
    targets: list[int] = []
    device = network.device
    longest = max(len(passage.near) for passage in passages)
    ids = [[*passage.near, *[0] * (longest - len(passage.near))] for passage in passages]
    hidden, _ = network.read(torch.tensor(ids, device=device), [_far_sides(network, passages, start_id)])
    for row, passage in enumerate(passages):
        rows.append(hidden[row, : len(passage.near) - 1])
        targets += passage.near[1:]
    logits = network.logits(torch.cat(rows))
    return F.cross_entropy(logits, torch.tensor(targets, device=device), reduction="none")


def predicted_tokens(batch: Sequence[Sequence[Passage]]) -> int:
    """The number of predicted tokens."""
    return sum(len(passage.near) - 1 for passages in batch for passage in passages)


def read_tokens(batch: Sequence[Sequence[Passage]]) -> int:
    """The number of block tokens that are prefilled, start tokens included."""
    return sum(len(block) + 1 for passages in batch for block in _blocks(passages))


def passage_losses(
    network: Decoder, batch: Sequence[Sequence[Passage]], start_id: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """For the passages of every file: their part of the mean over all, and their detached nats [P]."""
    total = predicted_tokens(batch)
    for passages in batch:
        nats = passage_nats(network, passages, start_id)
        yield nats.sum() / total, nats.detach()


def _blocks(passages: Sequence[Passage]) -> list[TokenIds]:
    return unique(block for passage in passages for block in passage.far)


@torch.no_grad()
def _far_sides(network: Decoder, passages: Sequence[Passage], start_id: int) -> KeyValueSegment:
    """The keys and values before each passage."""
    blocks = read_blocks(network, _blocks(passages), start_id)
    start = read_start(network, start_id)
    return pad_sides([side_by_side(network, [start, *(blocks[b] for b in p.far)], leading=True) for p in passages])
