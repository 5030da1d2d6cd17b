"""Drafts from the context: what followed the last tokens where they stood before.

Known as prompt lookup decoding (Saxena, 2023). It takes no forward pass, and code repeats itself.
"""

from collections.abc import Iterator, Sequence

Tokens = Sequence[int]

LONG_ENOUGH = 8
"""Tokens that are compared; a repeat that reaches further back is not preferred to one that reaches as far."""


class Lookup:
    """Finds repeats in blocks: the longest one, and of several as long the nearest, which the last block ends with."""

    def __init__(self, blocks: Sequence[Tokens] = ()) -> None:
        self.blocks = blocks
        self._behind: dict[int, list[tuple[Tokens, int]]] = {}
        for block in blocks:
            for at in range(1, len(block)):
                self._behind.setdefault(block[at - 1], []).append((block, at))

    def draft(self, before: Tokens, most: int) -> list[int]:
        """At most so many tokens that may follow `before`, which is looked through as well, and as many as repeat."""
        longest, draft = 0, list[int]()
        for run, at in self._places(before):
            length = _repeated(before, run, at)
            if length > longest:
                longest, draft = length, list(run[at : at + min(most, length)])
            if longest == LONG_ENOUGH:
                break
        return draft

    def _places(self, before: Tokens) -> Iterator[tuple[Tokens, int]]:
        """Where the last token stood before, the nearest first: the run and the place behind it."""
        if not before:
            return
        for at in range(len(before) - 1, 0, -1):
            if before[at - 1] == before[-1]:
                yield before, at
        yield from reversed(self._behind.get(before[-1], ()))


def _repeated(before: Tokens, run: Tokens, at: int) -> int:
    """How many of the last tokens stand in front of the place, counted up to `LONG_ENOUGH`."""
    most = min(LONG_ENOUGH, at, len(before))
    return next((n for n in range(most) if run[at - 1 - n] != before[-1 - n]), most)
