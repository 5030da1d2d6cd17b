"""The rows of a step, and which keys they see.

Dimensions: R rows, T keys.
"""

from dataclasses import dataclass

from torch import Tensor

UNSEEN = 1 << 30
"""Order of keys that no row sees."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a pass, int64 [R] each, and how many keys were there before them.

    A row sees every key of order 0, and those whose order is from `first` to `limit`.
    """

    ids: Tensor
    positions: Tensor
    order: Tensor
    """Of the rows' own keys; UNSEEN for padding."""
    first: Tensor
    limit: Tensor
    held: Tensor
    """Scalar: the rows' keys are written after so many."""

    def slots(self, place: Tensor) -> Tensor:
        """Where in the keys each row is written; `place` [T] counts keys from 0."""
        return place[: len(self.ids)] + self.held

    def orders(self, place: Tensor, slots: Tensor) -> Tensor:
        """The order of every key [T]."""
        return ((place >= self.held) * UNSEEN).index_copy_(0, slots, self.order)
