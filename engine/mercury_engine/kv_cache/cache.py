"""The KV cache: keys and values of earlier context, found again by content.

Far and suffix blocks are read alone, so a text has the same keys and values anywhere. The near prefix is a stack after
the far blocks: typing pushes tokens, deleting pops them.

Every block is read after a start token, whose keys and values are dropped: it takes the attention that a causal model
parks on its first position. One start token is kept at the far end of the prefix. (Nats per token on held-out Python
with ten far blocks: one causal run 1.49; blocks read alone 1.78; without their start tokens but one 1.64.)
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from mercury_engine.kv_cache.read_ahead import ReadAhead, TokenIds
from mercury_engine.lru import LeastRecentlyUsed
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.gpu import free_bytes
from mercury_engine.models.network import ForwardRequest, KeyValueBlock, KeyValueSegment, Network, join, part_of
from mercury_engine.text.common_prefix import common_prefix

SegmentKey = tuple[bool, tuple[TokenIds, ...]]
"""Identifies a side: whether it leads to the gap, and its blocks."""

StackKey = tuple[tuple[TokenIds, ...], TokenIds, str]
"""Identifies where stacks stand: after which far blocks, after which near prefix, and read with which adapter."""

LEAST_BUDGET = 64 << 20
"""Bytes of blocks that are kept at least; a token of the bundled model takes 12 KB on a CPU."""

KEPT_TOKENS, KEPT_TOKENS_GPU = 5_500, 20_000
"""Tokens whose blocks are kept if LEAST_BUDGET holds fewer: about five contexts, or twenty on a GPU."""

MEMORY_SHARE = 8
"""Beyond five contexts, blocks take at most this fraction of the GPU memory that is free at the start."""

PACKED_TOKENS = 512
"""Tokens of blocks that a GPU reads in one pass, side by side; a CPU gains nothing by that."""

LEFT_TOKENS = 8
"""Tokens at the end of a near prefix that may be left to the pass after it, which takes hardly longer with them."""

KEPT_SEGMENTS = 4
"""Assembled sides that are kept: both sides of two gaps."""

KEPT_STACKS = 8
"""Places whose near stacks are kept; twice as many if tokens after a near prefix are read with an adapter."""

KEPT_AHEAD = 4
"""Places whose latest passes are kept."""

KEPT_BRANCHES = 2
"""Diverging stacks that are kept after the same blocks: the latest edit and its predecessor."""


@dataclass(frozen=True, slots=True)
class AdaptedTokens:
    """Tokens of a near prefix from the `first` on, to be read with an adapter."""

    adapter: str
    first: int
    kept: int = 0
    """Beyond KEPT_BRANCHES, stacks are kept while they have at most this many tokens together."""


@dataclass(frozen=True, slots=True)
class NearStack:
    """Tokens of a near prefix after one far side, from position 0; or tokens read with an adapter after the prefix."""

    ids: TokenIds
    side: KeyValueSegment


@dataclass(slots=True)
class GapContext:
    """What a decoder sees around a gap: the sides before and after it, and how many tokens had to be read for them."""

    before: list[KeyValueSegment]
    after: list[KeyValueSegment]
    tokens_read: int
    near: TokenIds
    """Tokens of the near prefix, with the markers of a gap format; the fill follows the last one."""
    text: TokenIds
    """Tokens of the near prefix alone."""
    far: tuple[TokenIds, ...] = ()
    """The blocks in front of them, also those left out because of an `unread_limit`."""
    tokens_unread: int = 0
    """Tokens of the blocks that were left out."""
    adapter: str = ""
    """The adapter with which the fill is read."""
    left: int = 0
    """Tokens before the last one that the next pass has to read; they count as read."""
    stacked: TokenIds = ()
    """The tokens of the last near stack, without those that are left."""
    ahead: ReadAhead | None = None
    """What was read behind it; None on a GPU, where a pass costs less than looking."""

    @property
    def unread(self) -> TokenIds:
        """The tokens that are still to be read, the one that the fill follows the last of them."""
        return self.near[-1 - self.left :]

    @property
    def ends(self) -> int:
        """The position of the token that the fill follows, counted from the start of `near`."""
        return len(self.near) - 1

    @property
    def tokens(self) -> int:
        """Tokens that the model sees before the fill."""
        return len(self.near) + sum(map(len, self.far)) - self.tokens_unread


class BlockCache:
    """The most recently used blocks, assembled sides and near stacks of all documents.

    `budget` bounds the blocks, in bytes; None: by what a token of the model takes, and by a GPU's memory.
    """

    def __init__(self, network: Network, start_id: int, budget: int | None = None) -> None:
        self.network, self.start_id = network, start_id
        self.tokens_read = 0
        [(_, start)] = network.read_together([ForwardRequest(np.array([start_id]))])
        self.start = network.kept(start)
        """The start token, which stands at the far end of every context."""
        on_cpu = network.device == "cpu"
        self._tokens_per_pass = 0 if on_cpu else PACKED_TOKENS
        self.budget = budget or _affordable_bytes(network, _bytes(self.start))
        self._blocks = LeastRecentlyUsed[TokenIds, KeyValueBlock](self.budget, _bytes)
        self._sides = LeastRecentlyUsed[SegmentKey, KeyValueSegment](KEPT_SEGMENTS)
        self._stacks = LeastRecentlyUsed[StackKey, tuple[NearStack, ...]](KEPT_STACKS * (2 if network.adapters else 1))
        self._ahead = LeastRecentlyUsed[StackKey, ReadAhead](KEPT_AHEAD) if on_cpu else None

    def context(
        self,
        far: list[TokenIds],
        near: TokenIds,
        suffix: list[TokenIds],
        adapted: AdaptedTokens | None = None,
        leaves: bool = False,
    ) -> ForwardSteps[GapContext]:
        """What is around a gap between these blocks; reads only tokens that are new in their place.

        The last token of `near` is left to the caller, and a few more of them if it `leaves` them. What has been read
        is kept even if the caller stops before the rest is read.
        """
        ahead, following = (True, tuple(b for b in far if b)), (False, tuple(b for b in suffix if b))
        # held from here on: other requests may read in the meantime
        sides = {side: self._sides.get(side) for side in (ahead, following)}
        nearest_first = ((ahead, ahead[1][::-1]), (following, following[1]))
        missing = [key for side, keys in nearest_first if sides[side] is None for key in keys]
        blocks, read = yield from self.read(missing)  # in one go: a block may be part of both sides
        before = [sides[ahead] or self._assembled(ahead, blocks)]
        first = len(near) - 1 if adapted is None else adapted.first
        prefix, last = near[: max(0, first)], near[max(0, first) : -1]
        stacks: list[tuple[StackKey, TokenIds, int]] = [((ahead[1], (), ""), prefix, 0)]
        if adapted is not None and last:
            stacks.append(((ahead[1], prefix, adapted.adapter), last, adapted.kept))
        place, last, _ = stacks[-1]
        left = 0
        for stack in stacks:
            if stack[1]:
                most_left = LEFT_TOKENS if leaves and stack is stacks[-1] else 0
                pushed, left = yield from self._near(*stack, before, most_left)
                read += pushed
        after = [sides[following] or self._assembled(following, blocks)] if following[1] else []
        stacked, rows = last[: len(last) - left], self._ahead_of(place)
        adapter = "" if adapted is None else adapted.adapter
        return GapContext(before, after, read, near, near, adapter=adapter, left=left, stacked=stacked, ahead=rows)

    def affordable(self, far: list[TokenIds], near: TokenIds, limit: int) -> list[TokenIds]:
        """As many far blocks as possible if at most `limit` tokens may be read.

        That is all of them, the cached ones, or those in front of a near stack; if each needs more, the choice that
        needs the fewest tokens.
        """
        stacks: dict[tuple[TokenIds, ...], list[TokenIds]] = {}
        for (blocks, prefix, adapter), found in zip(self._stacks, self._stacks.values(), strict=True):
            stacks.setdefault(blocks, []).extend(() if prefix or adapter else [stack.ids for stack in found])
        cached = [block for block in far if block in self._blocks]
        ahead_of_stacks = [list(blocks) for blocks in stacks if set(blocks) <= set(far)]
        unread = [(self._unread(stacks, blocks, near), blocks) for blocks in (far, cached, *ahead_of_stacks)]
        within = [(tokens, blocks) for tokens, blocks in unread if tokens <= limit]
        if not within:
            return min(unread, key=lambda each: each[0])[1]
        return max(within, key=lambda each: (sum(map(len, each[1])), -each[0]))[1]

    def _unread(
        self, stacks: Mapping[tuple[TokenIds, ...], Sequence[Sequence[int]]], far: list[TokenIds], near: TokenIds
    ) -> int:
        """Number of tokens that `context` would read for these blocks and this near prefix."""
        branches = stacks.get(tuple(block for block in far if block)) or ()
        pushed = len(near) - max((common_prefix(ids, near) for ids in branches), default=0)
        return pushed + sum(len(block) for block in set(far) if block not in self._blocks)

    def clear(self) -> None:
        """Forget everything, as if nothing had been read."""
        self._blocks.clear()
        self._sides.clear()
        self._stacks.clear()
        if self._ahead is not None:
            self._ahead.clear()

    def _ahead_of(self, place: StackKey) -> ReadAhead | None:
        return None if self._ahead is None else self._ahead.get_or_make(place, ReadAhead)

    def _assembled(self, which: SegmentKey, read: dict[TokenIds, KeyValueBlock]) -> KeyValueSegment:
        """Adjacent blocks, ending at position -1 (leading) or starting at 0."""
        leading, key = which
        blocks = ([self.start] if leading else []) + [read[k] for k in key]
        first = -sum(block.tokens for block in blocks) if leading else 0
        return self._sides.put(which, self.network.side_by_side(blocks, first))

    def read(self, keys: Sequence[TokenIds]) -> ForwardSteps[tuple[dict[TokenIds, KeyValueBlock], int]]:
        """The blocks of these texts, the first to be read first, and how many of their tokens were read now."""
        found = {key: block for key in keys if (block := self._blocks.get(key)) is not None}
        missing = [key for key in dict.fromkeys(keys) if key not in found]
        for group in self._groups(missing):  # one by one, so that a cancelled request stops between two
            found |= yield from self._read_group(group)
        for key in reversed(keys):  # used in this order, which decides what is dropped next
            self._blocks.get(key)
        return found, sum(map(len, missing))

    def _groups(self, keys: list[TokenIds]) -> Iterator[list[TokenIds]]:
        """The keys in groups that are each read in one pass."""
        group: list[TokenIds] = []
        for key in keys:
            if group and sum(map(len, group)) + len(key) > self._tokens_per_pass:
                yield group
                group = []
            group.append(key)
        if group:
            yield group

    def _read_group(self, keys: list[TokenIds]) -> ForwardSteps[dict[TokenIds, KeyValueBlock]]:
        """A block read alone, or on a GPU blocks side by side after one start token, none of which sees another."""
        if not self._tokens_per_pass:
            [key] = keys
            result = yield ForwardRequest(np.array([self.start_id, *key]))
            return {key: self._keep(key, part_of(result.block, 1, 1 + len(key)))}
        lengths = [len(key) for key in keys]
        result = yield ForwardRequest(np.concatenate(keys), [self.network.rotated(self.start, 0)], 1, lengths)
        ends = accumulate(lengths)
        return {
            key: self._keep(key, part_of(result.block, end - len(key), end))
            for key, end in zip(keys, ends, strict=True)
        }

    def _keep(self, key: TokenIds, read: KeyValueBlock) -> KeyValueBlock:
        """What is kept of a block that was read."""
        block = self.network.kept(read)
        self.tokens_read += len(key)
        if key not in self._blocks:  # another request may have read it in the meantime
            self._blocks.put(key, block)
        return block

    def _near(
        self, place: StackKey, near: TokenIds, kept_tokens: int, before: list[KeyValueSegment], most_left: int
    ) -> ForwardSteps[tuple[int, int]]:
        """Add a stack of these tokens at the place to the sides; how many of them are new, and left to be read."""
        stacks, ahead = self._stacks.get(place) or (), self._ahead_of(place)
        stack = max(stacks, key=lambda each: common_prefix(each.ids, near), default=None)
        stacked = kept = common_prefix(stack.ids, near) if stack else 0
        side = first_tokens(stack.side, kept) if stack else None
        if ahead is not None and (known := ahead.find(near, kept)):
            side = known.side if side is None else join([side, known.side])
            kept = len(known.ids)
        new = len(near) - kept
        left = new if new <= most_left else 0
        if new > left:
            past, start = before if side is None else [*before, side], len(place[1]) + kept
            result = yield ForwardRequest(np.array(near[kept:]), [*past], start, adapter=place[2])
            self.tokens_read += new
            pushed = self.network.rotated(result.block, start)
            side, kept = pushed if side is None else join([side, pushed]), len(near)
        self.tokens_read += left
        if side is not None and kept > stacked:
            ids, others = near[:kept], self._stacks.get(place) or ()  # some may have been read in the meantime
            latest = [NearStack(ids, side), *(each for each in others if each.ids != ids[: len(each.ids)])]
            fitting = bisect_right([*accumulate(len(each.ids) for each in latest)], kept_tokens)
            self._stacks.put(place, tuple(latest[: max(KEPT_BRANCHES, fitting)]))
        before += [] if side is None else [side]
        return new, left


def first_tokens(side: KeyValueSegment, tokens: int) -> KeyValueSegment | None:
    """The first tokens of a side; None for 0 tokens."""
    if tokens == side.keys.shape[3]:
        return side
    return part_of(side, 0, tokens) if tokens else None


def _affordable_bytes(network: Network, token_bytes: int) -> int:
    least, most = max(LEAST_BUDGET, KEPT_TOKENS * token_bytes), KEPT_TOKENS_GPU * token_bytes
    if network.device == "cpu" or (free := free_bytes(network.device)) is None:
        return least
    return max(least, min(most, free // MEMORY_SHARE))


def _bytes(block: KeyValueBlock) -> int:
    return int(block.keys.nbytes) + int(block.values.nbytes)
