"""Operands: the groups of tensors that the operations take and return.

Dimensions: B requests, R canvas rows per request, M = B*R rows, H key heads, G query heads per key head, D head
width, N pages, P tokens per page, W table columns.
"""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Matrix:
    """A linear map [out,in]."""

    weight: Tensor
    bias: Tensor | None = None

    @property
    def outputs(self) -> int:
        return self.weight.shape[0]


@dataclass(frozen=True, slots=True)
class RowPositions:
    """Positions int32 [M] of rows, and the angles of all positions: cos and sin, float32 [positions,D/2]."""

    positions: Tensor
    cos: Tensor
    sin: Tensor


@dataclass(frozen=True, slots=True)
class Table:
    """The pages that each request sees, in order: those of its far blocks, then its own.

    pages int32 [B,W] are page numbers, counts int32 [B,W] the visible tokens in each; ends int32 [B] columns are used.
    The own ones begin at column own[b], own int32 [B]; a row sees only their keys below its limit, limits int32 [M].
    """

    pages: Tensor
    counts: Tensor
    ends: Tensor
    own: Tensor
    limits: Tensor
