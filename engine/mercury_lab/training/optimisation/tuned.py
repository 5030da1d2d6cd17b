"""The network of a reader in training, and its loss on passages.

Dimensions: P predicted tokens, C width.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from mercury_engine.kv_cache.cache import TokenIds, without_start
from mercury_engine.models import decoder_weights, weights
from mercury_engine.models.decoder import Adapted, PositionFrames, TorchDecoder
from mercury_engine.models.network import KeyValueBlock, KeyValueSegment
from mercury_engine.models.weights import FUSED_MATRICES
from torch import Tensor
from torch.nn import functional as F

from mercury_lab.training.examples.passages import Passage
from mercury_lab.training.optimisation.merged import MergedLinear
from mercury_lab.training.optimisation.prefill import pad_sides, read_start, side_by_side
from mercury_lab.training.optimisation.ragged import read_runs
from mercury_lab.training.optimisation.run import move_for_training
from mercury_lab.training.optimisation.sharing import read_blocks, unique


class TunedReader(TorchDecoder):
    """A reader in training: its prefill applies the low-rank change."""

    def merge(self) -> None:
        """From now on add the change to the matrices before every product."""
        for layer in self._layers():
            for name in FUSED_MATRICES:
                setattr(layer, name, MergedLinear(getattr(layer, name)))

    def run(
        self,
        x_BRC: Tensor,
        frames: PositionFrames,
        before: Sequence[KeyValueSegment],
        after: Sequence[KeyValueSegment],
        adapted: Adapted,
    ) -> tuple[Tensor, KeyValueBlock | None]:
        return super().run(x_BRC, frames, before, after, adapted=True)


def fresh_reader(base: Path, rank: int, device: torch.device) -> TunedReader:
    """The base with a low-rank change that is still zero; for its dtypes see `move_for_training`."""
    network = TunedReader(replace(weights.read_config(base), adapter_rank=rank))
    decoder_weights.fill_reader(network, base)
    network.markers.requires_grad_(False)
    move_for_training(network, device)
    network.merge()
    return network


def passage_nats(network: TorchDecoder, passages: Sequence[Passage], start_id: int) -> Tensor:
    """Nats [P] of every near token except the first of each passage; blocks are prefilled without gradients."""
    read = _read_padded if network.device.type == "cuda" else _read_ragged
    hidden = torch.cat([rows[:-1] for rows in read(network, passages, start_id)])
    targets = torch.tensor([token for passage in passages for token in passage.near[1:]], device=hidden.device)
    return F.cross_entropy(network.logits(hidden), targets, reduction="none")


def _read_padded(network: TorchDecoder, passages: Sequence[Passage], start_id: int) -> list[Tensor]:
    """Hidden states [near,C] of every passage, all read in one padded batch."""
    longest = max(len(passage.near) for passage in passages)
    ids = [[*passage.near, *[0] * (longest - len(passage.near))] for passage in passages]
    far = pad_sides(_far_sides(network, passages, read_blocks(network, _blocks(passages), start_id), start_id))
    hidden, _ = network.read(torch.tensor(ids, device=network.device), [far])
    return [rows[: len(passage.near)] for rows, passage in zip(hidden, passages, strict=True)]


def _read_ragged(network: TorchDecoder, passages: Sequence[Passage], start_id: int) -> list[Tensor]:
    """The same without padding."""
    with torch.no_grad():
        blocks = _blocks(passages)
        _, read = read_runs(network, [(start_id, *block) for block in blocks])
        known = dict(zip(blocks, map(without_start, read), strict=True))
    return read_runs(network, [p.near for p in passages], _far_sides(network, passages, known, start_id))[0]


def predicted_tokens(batch: Sequence[Sequence[Passage]]) -> int:
    """The number of predicted tokens."""
    return sum(len(passage.near) - 1 for passages in batch for passage in passages)


def read_tokens(batch: Sequence[Sequence[Passage]]) -> int:
    """The number of block tokens that are prefilled, start tokens included."""
    return sum(len(block) + 1 for passages in batch for block in _blocks(passages))


def passage_losses(
    network: TorchDecoder, batch: Sequence[Sequence[Passage]], start_id: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """For the passages of every file: their part of the mean over all, and their detached nats [P]."""
    total = predicted_tokens(batch)
    for passages in batch:
        nats = passage_nats(network, passages, start_id)
        yield nats.sum() / total, nats.detach()


def _blocks(passages: Sequence[Passage]) -> list[TokenIds]:
    return unique(block for passage in passages for block in passage.far)


@torch.no_grad()
def _far_sides(
    network: TorchDecoder, passages: Sequence[Passage], blocks: Mapping[TokenIds, KeyValueBlock], start_id: int
) -> list[KeyValueSegment]:
    """The keys and values before each passage."""
    start = read_start(network, start_id)
    return [side_by_side(network, [start, *(blocks[b] for b in p.far)], leading=True) for p in passages]
