"""Attention of packed rows that each see a few ranges of keys: FlexAttention, without a mask of rows by keys in memory.

A canvas has two position frames. Here both are one product: queries are [near, away], keys are [k, 0] for the prefix
and the rows, [0, k] for the suffix.

Dimensions: R rows, T keys, P ranges per row, H key heads, G query heads per key head, D head width.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from mercury_kernels.ops import Segment
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask, flex_attention

TILE_SIZE = 128
"""Rows, and keys, per tile; sequences are padded to multiples of it, and tiles that no row sees are skipped."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """The keys that rows see: `low` to `high` (exclusive), int32 [P,R]; the ranges of a row are disjoint."""

    low: Tensor
    high: Tensor
    mask: BlockMask

    @classmethod
    def of(cls, low: Tensor, high: Tensor, keys: int) -> "Ranges":
        assert low.shape[1] % TILE_SIZE == 0 and keys % TILE_SIZE == 0, "rows and keys come in whole tiles"
        touched, covered = tiles(low, high, keys)
        partial, full = _ordered(touched & ~covered), _ordered(covered)
        return cls(
            low, high, BlockMask.from_kv_blocks(*partial, *full, BLOCK_SIZE=TILE_SIZE, mask_mod=_seen(low, high))
        )

    def attend(self, near: list[Segment], away: list[Segment]) -> Tensor:
        """Attention [1,H,G*R,D] over all segments together; biases are ignored."""
        q, k, v = near[0][0], torch.cat([s[1] for s in near], 2), torch.cat([s[2] for s in (*near, *away)], 2)
        heads, rows, width = k.shape[1], self.low.shape[1], k.shape[3]
        if away:
            q = torch.cat((q, away[0][0]), -1)
            k = torch.cat((F.pad(k, (0, width)), *(F.pad(s[1], (width, 0)) for s in away)), 2)
        q = q.view(1, -1, rows, q.shape[-1])
        out = _attention(q.is_cuda)(q, k, v, block_mask=self.mask, scale=width**-0.5, enable_gqa=True)
        return out.reshape(1, heads, -1, width)

    def dense(self, keys: int) -> Tensor:
        """The ranges as one mask, bool [R,T]; for tests."""
        key = torch.arange(keys, device=self.low.device)
        return ((key >= self.low[..., None]) & (key < self.high[..., None])).any(0)


def tiles(low: Tensor, high: Tensor, keys: int) -> tuple[Tensor, Tensor]:
    """For tiles of rows and keys, bool [R/TILE, T/TILE]: whether any row sees a key; whether every row sees all."""
    row = (torch.arange(low.shape[1], device=low.device) // TILE_SIZE).expand_as(low)
    shape = low.shape[1] // TILE_SIZE, keys // TILE_SIZE + 1

    def count(first: Tensor, last: Tensor) -> Tensor:
        """For each tile, how many ranges of its rows contain its keys."""
        some = (last > first).int()
        change = torch.zeros(shape, dtype=torch.int32, device=low.device)
        change.index_put_((row, first.long()), some, accumulate=True)
        change.index_put_((row, last.long()), -some, accumulate=True)
        return change.cumsum(1)[:, :-1]

    seen = high > low
    touched = count(low // TILE_SIZE, torch.where(seen, (high + TILE_SIZE - 1) // TILE_SIZE, low // TILE_SIZE)) > 0
    return touched, count((low + TILE_SIZE - 1) // TILE_SIZE, high // TILE_SIZE) == TILE_SIZE


def _ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """For every row of tiles: the number of true tiles, int32 [1,1,rows], and the columns, true ones first."""
    order = dense.int().argsort(dim=1, descending=True, stable=True)
    return dense.sum(1, dtype=torch.int32)[None, None], order.int()[None, None].contiguous()


def _seen(low: Tensor, high: Tensor) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    def seen(batch: Tensor, head: Tensor, row: Tensor, key: Tensor) -> Tensor:
        inside = (key >= low[0, row]) & (key < high[0, row])
        for part in range(1, low.shape[0]):
            inside = inside | ((key >= low[part, row]) & (key < high[part, row]))
        return inside

    return seen


def _attention(on_gpu: bool) -> Any:
    """FlexAttention; compiled on a GPU, where it would otherwise build the whole score matrix."""
    return _compiled() if on_gpu and not torch.compiler.is_compiling() else flex_attention


@cache
def _compiled() -> Any:
    return torch.compile(flex_attention, dynamic=False)
