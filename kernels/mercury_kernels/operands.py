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


@dataclass(frozen=True, slots=True)
class Drafts:
    """Rows of drafts of B requests, and what `accept` decides about each; K lists of tokens are given beside them.

    token int32 [B,R], probability float32 [B,R]: decided, the best token after a row and its probability
    accepted int32 [B]: decided, the number of drafts from row `first` on that are the best tokens
    draft int32 [B,R]: the token in the next row, or -1 after the last one
    first int32 [B]: the first row that counts
    ban, stop int32 [B,R]: lists of the tokens that may not follow, and of those that mean the end marker
    share float32 [B,R]: the share of a row's pairs in its distribution; the rest is the model's
    pair_first, pair_last int32 [B,R]: where a row's pairs stand
    pair_token int32, pair_share float32 [P]: pairs of a token and its probability, no token twice in a row
    """

    token: Tensor
    probability: Tensor
    accepted: Tensor
    draft: Tensor
    first: Tensor
    ban: Tensor
    stop: Tensor
    share: Tensor
    pair_first: Tensor
    pair_last: Tensor
    pair_token: Tensor
    pair_share: Tensor
