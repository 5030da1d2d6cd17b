"""Compute the canvases of a window as one row of a batch per gap, padded to the longest: for CPUs.

Dimensions: B gaps, R rows of all canvases, T context tokens, C width.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.network import KeyValueBlock, KeyValueSegment, Packing, join
from torch import Tensor

from mercury_lab.training.examples.gaps import TrainingGap
from mercury_lab.training.optimisation.objective import Rows
from mercury_lab.training.optimisation.prefill import pad_sides, read_start, side_by_side
from mercury_lab.training.optimisation.sharing import StepCost, leaders, read_blocks, stack, unique_blocks


@dataclass(frozen=True, slots=True)
class Padded:
    """Gaps and the rows of their canvases; `packed.Packed` is the counterpart for GPUs."""

    gaps: Sequence[TrainingGap]
    rows: Rows
    start_id: int

    @property
    def work(self) -> StepCost:
        return StepCost.of(self.gaps, self.rows)

    @torch.no_grad()
    def read(self, network: TorchDecoder) -> tuple[KeyValueSegment, KeyValueSegment]:
        """Prefix and suffix sides of all gaps, without the last token of each near prefix."""
        blocks = read_blocks(network, unique_blocks(self.gaps), self.start_id)
        start = read_start(network, self.start_id)
        far = [side_by_side(network, [start, *(blocks[b] for b in g.far if b)], leading=True) for g in self.gaps]
        stacks = self._read_near(network, far)
        prefixes = [join([side, near]) if near else side for side, near in zip(far, stacks, strict=True)]
        after = ([blocks[b] for b in g.suffix if b] or [start] for g in self.gaps)
        return pad_sides(prefixes), pad_sides([side_by_side(network, b, leading=False) for b in after])

    def _read_near(self, network: TorchDecoder, far: list[KeyValueSegment]) -> list[KeyValueSegment | None]:
        """The near stack of every gap."""
        stacks = [stack(gap) for gap in self.gaps]
        leader = leaders(self.gaps)
        read = sorted(set(leader))
        longest = max(len(stacks[i]) for i in read)
        if not longest:
            return [None] * len(stacks)
        ids = [[*stacks[i], *[0] * (longest - len(stacks[i]))] for i in read]
        ids_BT = torch.tensor(ids, device=far[0].keys.device)
        _, near = network.read(ids_BT, [pad_sides([far[i] for i in read])])
        row = {i: number for number, i in enumerate(read)}
        return [_cut(network, near, row[leader[i]], len(s)) if s else None for i, s in enumerate(stacks)]

    def write(self, network: TorchDecoder, context: tuple[KeyValueSegment, KeyValueSegment], ids_R: Tensor) -> Tensor:
        """Hidden states [R,C] of the rows."""
        rows, device = self.rows, ids_R.device
        first = torch.tensor([int((rows.gap < gap).sum()) for gap in range(len(self.gaps))], device=device)
        gap = torch.from_numpy(rows.gap).to(device)
        column = torch.arange(len(rows.ids), device=device) - first[gap]
        shape = len(self.gaps), int(column.max()) + 1

        def spread(values: Tensor, fill: int) -> Tensor:
            return torch.full(shape, fill, device=device).index_put((gap, column), values)

        packing = Packing(
            spread(torch.from_numpy(rows.canvas).to(device), -1),
            spread(torch.from_numpy(rows.place).to(device), 0),
            spread(torch.from_numpy(rows.length).to(device), 1),
        )
        ends = torch.tensor([len(g.near) - 1 for g in self.gaps], device=device)
        prefix, suffix = context
        return network.write(spread(ids_R, 0), [prefix], [suffix], ends, packing)[gap, column]


def _cut(network: TorchDecoder, near: KeyValueBlock, row: int, tokens: int) -> KeyValueSegment:
    return network.rotated(
        KeyValueBlock(near.keys[:, row : row + 1, :, :tokens], near.values[:, row : row + 1, :, :tokens]), 0
    )
