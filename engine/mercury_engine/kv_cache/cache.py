"""Keys and values of context that was read before, found again by content.

Far and suffix blocks are read alone, so the same text has the same cache wherever it stands. The near prefix is
a stack behind the far blocks: typing pushes tokens, deleting pops them.
"""

from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import Tensor

from mercury_engine.kv_cache.prefill import read_start, side_by_side, without_start
from mercury_engine.lru import fresh, keep
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import ForwardRequest, KeyValueBlock, KeyValueSegment, Network, join
from mercury_engine.text.common_prefix import common_prefix

TokenIds = tuple[int, ...]
SegmentKey = tuple[bool, tuple[TokenIds, ...]]
"""A side: whether it leads to the gap, and its blocks."""

KEPT_SEGMENTS = 4
"""That stay assembled: those of two places."""


@dataclass(frozen=True, slots=True)
class NearStack:
    """Near-prefix tokens read behind one far side, with their keys rotated from position 0."""

    ids: TokenIds
    side: KeyValueSegment


@dataclass(slots=True)
class CachedContext:
    """All a canvas sees: sides before it, sides after it, and how many tokens had to be read for that."""

    before: list[KeyValueSegment]
    after: list[KeyValueSegment]
    tokens_read: int


class BlockCache:
    """Blocks, assembled sides and near stacks of all documents, least recently used ones dropped.

    `budget` is in bytes and bounds the blocks. Of sides those of two places are kept, and of near stacks `stacks`. On a
    CPU each token of the bundled model takes 12 KB in either.
    """

    def __init__(self, network: Network, start_id: int, budget: int = 64 << 20, stacks: int = 8) -> None:
        self.network, self.start_id, self.budget, self.stacks = network, start_id, budget, stacks
        self.tokens_read = 0
        self.bytes = 0
        self._start = network.kept(read_start(network, start_id))
        self._blocks: OrderedDict[TokenIds, KeyValueBlock] = OrderedDict()
        self._sides: OrderedDict[SegmentKey, KeyValueSegment] = OrderedDict()
        self._stacks: OrderedDict[tuple[TokenIds, ...], NearStack] = OrderedDict()

    def context(self, far: list[TokenIds], near: TokenIds, suffix: list[TokenIds]) -> ForwardSteps[CachedContext]:
        """The sides for these blocks; reads only tokens never read in their place before.

        What was read is kept, also when nobody goes on with the rest.
        """
        ahead, behind = (True, tuple(b for b in far if b)), (False, tuple(b for b in suffix if b))
        # held from here on, for others may read meanwhile
        sides = {side: fresh(self._sides, side) for side in (ahead, behind)}
        missing = [key for side, found in sides.items() if found is None for key in side[1]]
        blocks, read = yield from self._read(missing)  # at once, for a block may stand on both sides
        before = [sides[ahead] or self._assembled(ahead, blocks)]
        if near:
            side, pushed = yield from self._near(ahead[1], near, before[0])
            before.append(side)
            read += pushed
        after = [sides[behind] or self._assembled(behind, blocks)] if behind[1] else []
        return CachedContext(before, after, read)

    def clear(self) -> None:
        """Forget everything, as if nothing had been read."""
        self._blocks.clear()
        self._sides.clear()
        self._stacks.clear()
        self.bytes = 0

    def _assembled(self, which: SegmentKey, read: dict[TokenIds, KeyValueBlock]) -> KeyValueSegment:
        """Blocks next to each other, ending at position -1 (leading) or starting at 0."""
        leading, key = which
        blocks = ([self._start] if leading else []) + [read[k] for k in key]
        return keep(self._sides, which, side_by_side(self.network, blocks, leading), KEPT_SEGMENTS)

    def _read(self, keys: list[TokenIds]) -> ForwardSteps[tuple[dict[TokenIds, KeyValueBlock], int]]:
        """The blocks, and how many of their tokens were read now."""
        found = {k: self._blocks[k] for k in keys if k in self._blocks}
        missing = sorted({k for k in keys if k not in found}, key=lambda k: (len(k), k))
        for key in missing:  # one by one: whoever does not need them any more stops between two
            found[key] = yield from self._read_block(key)
        for key in keys:
            if key in self._blocks:
                self._blocks.move_to_end(key)
        while self.bytes > self.budget and len(self._blocks) > 1:
            self.bytes -= _size(self._blocks.popitem(last=False)[1].keys)
        return found, sum(map(len, missing))

    def _read_block(self, key: TokenIds) -> ForwardSteps[KeyValueBlock]:
        ids_BT = torch.tensor([[self.start_id, *key]], device=self.network.device)
        given = yield ForwardRequest(ids_BT)
        block = self.network.kept(without_start(given.block))
        self.tokens_read += len(key)
        if key not in self._blocks:  # else it was read for somebody else meanwhile
            self._blocks[key] = block
            self.bytes += _size(block.keys)
        return block

    def _near(
        self, far: tuple[TokenIds, ...], near: TokenIds, far_side: KeyValueSegment
    ) -> ForwardSteps[tuple[KeyValueSegment, int]]:
        """A stack with exactly these tokens on it, and how many of them were read now."""
        stack = fresh(self._stacks, far)
        kept = common_prefix(stack.ids, near) if stack else 0
        side = first_tokens(stack.side, kept) if stack else None
        if kept < len(near):
            side = yield from self._push(side, near[kept:], kept, far_side)
            keep(self._stacks, far, NearStack(near, side), self.stacks)
        assert side is not None
        return side, len(near) - kept

    def _push(
        self, side: KeyValueSegment | None, ids: TokenIds, start: int, far: KeyValueSegment
    ) -> ForwardSteps[KeyValueSegment]:
        past = [far] if side is None else [far, side]
        given = yield ForwardRequest(torch.tensor([ids], device=self.network.device), past, start)
        self.tokens_read += len(ids)
        pushed = self.network.rotated(given.block, start)
        return pushed if side is None else join([side, pushed])


def first_tokens(side: KeyValueSegment, tokens: int) -> KeyValueSegment | None:
    """So many of a side, None for none."""
    return KeyValueSegment(side.keys[:, :, :, :tokens], side.values[:, :, :, :tokens]) if tokens else None


def _size(keys: Tensor) -> int:
    return 2 * keys.numel() * keys.element_size()
