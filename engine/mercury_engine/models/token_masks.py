"""Masks of tokens that a slot may not get, kept on the device; slots refer to them by number.

Dimensions: K masks, V vocabulary.
"""

from collections.abc import Callable, Hashable

import torch

from mercury_engine.lru import LeastRecentlyUsed
from mercury_engine.models.arrays import MaskArray


class TokenMasks:
    """The most recently used masks. Number 0 forbids nothing; the others replace each other.

    `table`, bool [K,V], stays at one address because captured graphs refer to it.
    """

    def __init__(self, vocabulary: int, device: torch.device, rows: int) -> None:
        self.table = torch.zeros(rows, vocabulary, dtype=torch.bool, device=device)
        self._numbers = LeastRecentlyUsed[Hashable, int](rows - 1)

    def number(self, name: Hashable, make_mask: Callable[[], MaskArray]) -> int:
        """The number of the mask with that name; `make_mask` returns it, bool [V], if the table lacks it."""
        return self._numbers.get_or_make(name, lambda: self._fill_row(make_mask))

    def _fill_row(self, make_mask: Callable[[], MaskArray]) -> int:
        oldest = next(iter(self._numbers)) if len(self._numbers) == self._numbers.limit else None
        number = len(self._numbers) + 1 if oldest is None else self._numbers.pop(oldest)
        assert number is not None
        self.table[number].copy_(torch.from_numpy(make_mask()))
        return number
