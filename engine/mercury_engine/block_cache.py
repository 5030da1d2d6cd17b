"""Keys and values of context that was read before, found again by content.

Far and suffix blocks are read alone, so the same text has the same cache wherever it stands. The near prefix is
a stack behind the far blocks: typing pushes tokens, deleting pops them.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from mercury_engine.model import Block, Network, Side, join
from mercury_engine.reading import read_alone, read_start, side_by_side

Tokens = tuple[int, ...]
K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class Stack:
    """Near-prefix tokens read behind one far side, with their keys rotated from position 0."""

    far: tuple[Tokens, ...]
    ids: Tokens
    side: Side | None


@dataclass(slots=True)
class Context:
    """All a canvas sees: sides before it, sides after it, and how many tokens had to be read for that."""

    before: list[Side]
    after: list[Side]
    tokens_read: int


class BlockCache:
    """Blocks, assembled sides and near stacks of all documents, least recently used ones dropped.

    `budget` is in bytes and bounds the blocks; of sides and stacks a few of the last are kept, some 7 and 2 MB each
    for the bundled model.
    """

    def __init__(self, network: Network, start_id: int, budget: int = 64 << 20, assembled: int = 1) -> None:
        self.network, self.start_id, self.budget, self.assembled = network, start_id, budget, assembled
        self.tokens_read = 0
        self.bytes = 0
        self._start = read_start(network, start_id)
        self._blocks: OrderedDict[Tokens, Block] = OrderedDict()
        self._sides: OrderedDict[tuple[bool, tuple[Tokens, ...]], Side] = OrderedDict()
        self._stacks: OrderedDict[tuple[tuple[Tokens, ...], Tokens], Stack] = OrderedDict()

    def context(self, far: list[Tokens], near: Tokens, suffix: list[Tokens]) -> Context:
        """The sides for these blocks; reads only tokens never read in their place before."""
        before = self.tokens_read
        far_key, suffix_key = tuple(b for b in far if b), tuple(b for b in suffix if b)
        ahead, behind = (True, far_key), (False, suffix_key)
        missing = [key for side in (ahead, behind) if not _fresh(self._sides, side) for key in side[1]]
        blocks = self._read(missing)  # at once, for a block may stand on both sides
        sides = [self._side(*ahead, blocks)]
        if near:
            sides.append(self._near(far_key, near, sides[0]))
        after = [self._side(*behind, blocks)] if suffix_key else []
        return Context(sides, after, self.tokens_read - before)

    def clear(self) -> None:
        """Forget everything, as if nothing had been read."""
        self._blocks.clear()
        self._sides.clear()
        self._stacks.clear()
        self.bytes = 0

    def _side(self, leading: bool, key: tuple[Tokens, ...], read: dict[Tokens, Block]) -> Side:
        """Blocks next to each other, ending at position -1 (leading) or starting at 0."""
        if found := _fresh(self._sides, (leading, key)):
            return found
        blocks = ([self._start] if leading else []) + [read[k] for k in key]
        side = side_by_side(self.network, blocks, leading)
        _keep(self._sides, (leading, key), side, 2 * self.assembled)
        return side

    def _read(self, keys: list[Tokens]) -> dict[Tokens, Block]:
        found = {k: self._blocks[k] for k in keys if k in self._blocks}
        missing = sorted({k for k in keys if k not in found}, key=lambda k: (len(k), k))
        for key in missing:  # one by one: padding would make the arithmetic depend on the neighbours
            found[key] = self._blocks[key] = read_alone(self.network, [key], self.start_id)[0]
            self.tokens_read += len(key)
            self.bytes += _size(found[key].keys)
        for key in keys:
            self._blocks.move_to_end(key)
        while self.bytes > self.budget and len(self._blocks) > 1:
            self.bytes -= _size(self._blocks.popitem(last=False)[1].keys)
        return found

    def _near(self, far: tuple[Tokens, ...], near: Tokens, far_side: Side) -> Side:
        """The near stack with exactly these tokens on it."""
        if found := _fresh(self._stacks, (far, near)):
            assert found.side is not None
            return found.side
        stack = max(
            (s for s in self._stacks.values() if s.far == far),
            key=lambda s: common_start(s.ids, near),
            default=None,
        )
        kept = common_start(stack.ids, near) if stack else 0
        side = first_tokens(stack.side, kept) if stack and stack.side else None
        if kept < len(near):
            side = self._push(side, near[kept:], kept, far_side)
        assert side is not None
        _keep(self._stacks, (far, near), Stack(far, near, side), 4 * self.assembled)
        return side

    @torch.no_grad()
    def _push(self, side: Side | None, ids: Tokens, start: int, far: Side) -> Side:
        past = [far] if side is None else [far, side]
        tensor = torch.tensor([ids], device=self.network.embedding.device)
        _, block = self.network.read(tensor, past, start)
        self.tokens_read += len(ids)
        pushed = self.network.rotated(block, start)
        return pushed if side is None else join([side, pushed])


def first_tokens(side: Side, tokens: int) -> Side | None:
    """So many of a side, None for none."""
    return Side(side.keys[:, :, :, :tokens], side.values[:, :, :, :tokens]) if tokens else None


def common_start(left: Sequence[int], right: Sequence[int]) -> int:
    """Length of the common beginning."""
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count


def _size(keys: Tensor) -> int:
    return 2 * keys.numel() * keys.element_size()


def _fresh(store: OrderedDict[K, V], key: K) -> V | None:
    """The entry, marked as used just now."""
    if key not in store:
        return None
    store.move_to_end(key)
    return store[key]


def _keep(store: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    store[key] = value
    while len(store) > most:
        store.popitem(last=False)
