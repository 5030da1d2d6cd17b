"""Drafts from the context: what followed the last two tokens where they stood before.

Known as prompt lookup decoding (Saxena, 2023). It takes no forward pass, and code repeats itself.
"""

from collections.abc import Sequence

Tokens = Sequence[int]

LAST = 2
"""Tokens that must be the same. (With three first, or one at last, fills took as long.)"""


class Lookup:
    """Finds repeats in blocks; where there are several, the last one of the last block counts."""

    def __init__(self, blocks: Sequence[Tokens] = ()) -> None:
        self.blocks = blocks
        self._behind = {tuple(block[at - LAST : at]): (block, at) for block in blocks for at in range(LAST, len(block))}

    def draft(self, before: Tokens, most: int) -> list[int]:
        """At most so many tokens that may follow `before`, which is looked through first, from its end."""
        last = tuple(before[-LAST:])
        if len(last) < LAST:
            return []
        for at in range(len(before) - 1, LAST - 1, -1):
            if before[at - 1] == last[-1] and tuple(before[at - LAST : at]) == last:
                return list(before[at : at + most])
        block, at = self._behind.get(last, ((), 0))
        return list(block[at : at + most])
