"""Operands: the groups of tensors that the operations take.

Dimensions: M rows, T keys, H key heads, G query heads per key head, D head width, P positions,
R rows.
"""

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from mercury_kernels.cpu.blocks import GROUP

UNSEEN = 1 << 30
"""Order of padding; other rows have smaller ones."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A linear map [out,in]: x W^T + b, with an adapter of rank N plus (x A^T) B^T. arXiv 2106.09685."""

    weight: Tensor
    """Floats, or int8 codes with `scales`."""
    bias: Tensor | None = None
    down: Tensor | None = None
    """A [N,in]."""
    up: Tensor | None = None
    """B [out,N]."""
    scales: Tensor | None = None
    """float16 [in/GROUP,out]; weight [o,i] is code [o,i] times scale [i // GROUP,o], the arithmetic of GGUF's Q8_0."""

    @property
    def outputs(self) -> int:
        return self.weight.shape[0]

    @property
    def weight_bytes(self) -> float:
        """Bytes of a weight, with its share of a scale."""
        return self.weight.element_size() + (0 if self.scales is None else self.scales.element_size() / GROUP)


@dataclass(frozen=True)
class Rows:
    """The rows of a pass: their positions, and which keys they see.

    Keys [H,T,D] are those of `context` tokens, then those of the rows. A row sees the whole context, and the rows whose
    order is from its `first` to its own order, so at least itself.
    """

    position: Tensor
    """int64 [M]: row of the tables."""
    order: Tensor
    """int64 [M]."""
    first: Tensor
    """int64 [M]."""
    context: Tensor
    """int64, scalar."""
    cos: Tensor
    """float32 [P,D]."""
    sin: Tensor
    """float32 [P,D], negative in the left half (`reference.rotary_angles`)."""
    _biases: dict[tuple[int, int, torch.dtype], Tensor] = field(default_factory=dict, repr=False)

    @cached_property
    def slots(self) -> Tensor:
        """int64 [M]: the places of the rows' keys."""
        return torch.arange(len(self.order), device=self.order.device) + self.context

    @cached_property
    def angles(self) -> tuple[Tensor, Tensor]:
        """The rows' cosines and sines [M,1,D]."""
        return self.cos[self.position][:, None], self.sin[self.position][:, None]

    def bias(self, keys: int, groups: int, dtype: torch.dtype) -> Tensor:
        """[G*M,T]: 0 for keys that a row sees, -inf for others; made once for all layers."""
        made = keys, groups, dtype
        if made not in self._biases:
            place = torch.arange(keys, device=self.order.device)
            order = torch.full_like(place, -1).index_copy_(0, self.slots, self.order)
            own = (order <= self.order[:, None]) & (order >= self.first[:, None])
            seen = own | (place < self.context)
            self._biases[made] = torch.where(seen, 0.0, float("-inf")).to(dtype).repeat(groups, 1)
        return self._biases[made]


RULE = 12
"""Numbers of a rule."""


@dataclass(frozen=True, slots=True)
class Slots:
    """The rows of a denoise step and its rule; the rows are changed in place."""

    ids: Tensor
    """int64 [R]."""
    order: Tensor
    """int64 [R]; UNSEEN for padding."""
    answer: Tensor
    """int64 [R]: the number of the answer about each slot, from 0 and rising; -1 for rows that are no slots."""
    rule: Tensor
    """float64 [RULE]. By falling confidence a step reveals `count` masks and the part `share` of them; those at least
    as sure as `least`; those before which the sum of entropies is at most `bound` nats. Then it masks the `again` least
    sure slots. `by_entropy`: confidence is the negative entropy, else the probability. Tokens follow, -1 where there is
    none: `end`, after which all slots are ends; `delete`, which removes its slot and all masks after it; `expand`,
    which turns its slot into two masks. Last, for `reference.draw`: `temperature`, `top_p`, `top_k`."""
    uniform: Tensor
    """float64: numbers from 0 to 1 that tokens are drawn with; the first is for the first slot not yet accepted."""
    mask: int
