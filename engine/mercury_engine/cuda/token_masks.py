"""Tokens that a slot may not get, as lists on the device that slots refer to by number.

Dimensions: K lists, V vocabulary with mask and end.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable

import torch
from torch import Tensor

MASK_ROWS = 16
"""Known at a time, number 0 included; one batch may use so many."""


class TokenMasks:
    """The lists used last. Number 0 forbids the mask only; of the others the one unused for longest makes room.

    `table`, bool [K,V], stays at one address, as captured work wants it.
    """

    def __init__(self, vocabulary: int, mask_id: int, device: torch.device) -> None:
        self.mask_id = mask_id
        self.table = torch.zeros(MASK_ROWS, vocabulary, dtype=torch.bool, device=device)
        self.table[:, mask_id] = True
        self._numbers: OrderedDict[Hashable, int] = OrderedDict()

    def number(self, name: Hashable, row: Callable[[], Tensor]) -> int:
        """The number of the list of that name; `row`, bool [V] of what it forbids, is asked when it is not known."""
        if name not in self._numbers:
            full = len(self._numbers) == MASK_ROWS - 1
            number = self._numbers.popitem(last=False)[1] if full else len(self._numbers) + 1
            self.table[number] = row().to(self.table.device)
            self.table[number, self.mask_id] = True
            self._numbers[name] = number
        self._numbers.move_to_end(name)
        return self._numbers[name]
