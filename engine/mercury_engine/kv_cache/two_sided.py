"""Keys and values of the text on both sides of a gap, for models whose rows all see each other.

They come from a pass over the whole text with the gap masked, and serve while the gap is denoised and while its user
types: that is approximate, for every key depends on what stood in the gap then. Tokens that differ from that pass are
computed again with the gap's. The whole text is read again after `MOST_USES` passes and where more than `MOST_NEW`
tokens differ. The idea is Fast-dLLM's dual cache, arXiv 2505.22618.

Dimensions: L layers, B batch (1), H key heads, T tokens, D head width.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mercury_engine.models.network import KeyValueBlock, KeyValueSegment, Network
from mercury_engine.text.common_prefix import common_prefix

MOST_NEW = 16
"""Tokens beside the gap that are computed again in every step; more cost about as much as the gap itself."""

MOST_USES = 128
"""Passes over the keys and values of one pass over the whole text: about a line of typing."""


MOST_PLACES = 16
"""Places at which the text after the gap is remembered; the search for its length tries several."""


@dataclass(frozen=True, slots=True)
class TwoSides:
    """A text with a gap, in tokens."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    def around(self, slots: Sequence[int]) -> list[int]:
        """The whole text with these tokens in the gap."""
        return [*self.before, *slots, *self.after]


class StaleSides:
    """What is taken from an earlier pass: its first `before` tokens and its last `after` ones."""

    def __init__(self, network: Network, block: KeyValueBlock, before: int, after: int) -> None:
        self.before, self.after, self._network = before, after, network
        kept = [_part(block, 0, before), _part(block, block.tokens - after, block.tokens)]
        self._kept = [network.kept(part) if part.tokens else None for part in kept]
        self._placed: dict[tuple[int, int], KeyValueSegment] = {}

    def segments(self, sides: TwoSides, slots: int) -> list[KeyValueSegment]:
        """Their keys and values, where they stand around a gap of so many slots; remembered by their place."""
        after_at = len(sides.before) + slots + len(sides.after) - self.after
        return [self._at(side, start) for side, start in ((0, 0), (1, after_at)) if self._kept[side] is not None]

    def _at(self, side: int, start: int) -> KeyValueSegment:
        if (side, start) not in self._placed:
            if len(self._placed) >= MOST_PLACES:
                self._placed.clear()
            kept = self._kept[side]
            assert kept is not None
            self._placed[side, start] = self._network.rotated(kept, start)
        return self._placed[side, start]


class TwoSidedCache:
    """The last pass over a whole text."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._sides: TwoSides | None = None
        self._block: KeyValueBlock | None = None
        self._stale: StaleSides | None = None
        self._uses = 0

    def put(self, sides: TwoSides, block: KeyValueBlock) -> None:
        """Keep the block of a pass over the text."""
        self._sides, self._block, self._stale, self._uses = sides, block, None, 0

    def find(self, sides: TwoSides) -> StaleSides | None:
        """What can be used again for a text; None where it must be read. Counts as one use."""
        known = self._sides
        if self._block is None or known is None or self._uses >= MOST_USES:
            return None
        before = min(common_prefix(known.before, sides.before), len(sides.before) - 1)
        after = common_prefix(reversed(known.after), reversed(sides.after))
        if before < 0 or len(sides.before) - before + len(sides.after) - after > MOST_NEW:
            return None
        self._uses += 1
        if self._stale is None or (self._stale.before, self._stale.after) != (before, after):
            self._stale = StaleSides(self._network, self._block, before, after)
        return self._stale

    def clear(self) -> None:
        """Forget the pass."""
        self._sides = self._block = self._stale = None


def _part(block: KeyValueBlock, start: int, end: int) -> KeyValueBlock:
    return KeyValueBlock(block.keys[:, :, :, start:end], block.values[:, :, :, start:end])
