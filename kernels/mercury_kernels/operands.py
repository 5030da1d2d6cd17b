"""What the operations work on, as plain groups of tensors.

Dimensions: B requests, R canvas rows a request, M = B*R rows, H key heads, G query heads per key head, D head
width, N pages, P tokens a page, W table columns.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Matrix:
    """A linear map [out,in]: plain floats, or int8 or float8_e4m3fn codes with a float32 scale per output."""

    weight: Tensor
    bias: Tensor | None = None
    scale: Tensor | None = None

    @property
    def outputs(self) -> int:
        return self.weight.shape[0]


@dataclass(frozen=True, slots=True)
class Frames:
    """Where rows stand: positions int32 [M] in the prefix frame (near) and in the suffix frame (away).

    Angles are looked up: cos and sin float32 [positions, D/2], row `origin` is position 0.
    """

    near: Tensor
    away: Tensor
    cos: Tensor
    sin: Tensor
    origin: int


@dataclass(frozen=True, slots=True)
class Table:
    """Which pages each request sees, in order: prefix, own rows, suffix.

    pages int32 [B,W] are page numbers, counts int32 [B,W] the tokens visible in each; ends int32 [B,2] says how
    many columns are prefix and own ones (they meet queries of the prefix frame), and how many there are in all.
    With `limits` int32 [M], a row sees own keys below its limit only, counted from column own[b], int32 [B].
    """

    pages: Tensor
    counts: Tensor
    ends: Tensor
    own: Tensor | None = None
    limits: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A row's distribution in four numbers [M]: best token int32, its logit, log-sum-exp, entropy in nats."""

    token: Tensor
    top: Tensor
    total: Tensor
    entropy: Tensor


@dataclass(frozen=True, slots=True)
class Slots:
    """The canvases of B requests, changed in place by `commit`.

    ids int32 [B,R], column 0 the last prefix token; rows int32 [B] used columns, 0 for an idle request; bound
    float32 [B] nats; most int32 [B] steps, the last of which commits all that is open; chance float32 [B,R] of
    every token when it was committed, 1 behind an end, 0 for a draft; open int32 [B] slots still masked; steps int32
    [B].
    """

    ids: Tensor
    rows: Tensor
    bound: Tensor
    most: Tensor
    chance: Tensor
    open: Tensor
    steps: Tensor


EIGHT_BIT = (torch.int8, torch.float8_e4m3fn)
LARGEST = {torch.int8: 127.0, torch.float8_e4m3fn: 448.0}
"""The largest code of each 8-bit format."""
