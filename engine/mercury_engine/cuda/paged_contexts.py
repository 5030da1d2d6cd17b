"""Contexts in pages on a GPU: far sides found again by their blocks, and after each a near stack that fills push to.

A stack is a list of pages and the tokens in them: typing pushes, deleting lowers the count, and what a fill accepted or
drafted stays until other tokens take its place, so an accepted suggestion is not read again. A fill has its stack to
itself; another one after the same far side gets a copy of the pages they share.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mercury_kernels.pages import PageRun

from mercury_engine.kv_cache.cache import KEPT_BRANCHES, AdaptedTokens, BlockCache, CachedContext, TokenIds
from mercury_engine.lru import LeastRecentlyUsed
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import KeyValueBlock
from mercury_engine.models.paged_reader import LEAST_PAGES, PREFILL_ROWS, ROWS, PagedReader
from mercury_engine.models.paged_rows import Decided, NextToken, PagedRows
from mercury_engine.text.common_prefix import common_prefix


@dataclass(slots=True, eq=False)
class PagedStack:
    """Tokens after a far side, read into pages."""

    side: PageRun
    ids: list[int] = field(default_factory=list)
    """The tokens whose keys and values the pages hold."""
    pages: list[int] = field(default_factory=list)
    near: int = 0
    """Number of tokens of the latest near prefix; those after it are of a fill."""
    taken: bool = False
    """Whether a fill uses it."""


@dataclass(slots=True)
class _Side:
    run: PageRun
    stacks: list[PagedStack] = field(default_factory=list)
    """The one used last comes last."""

    def idle(self) -> list[PagedStack]:
        return [stack for stack in self.stacks if not stack.taken]


class PagedContexts:
    """Reads contexts into the pages of a reader; `cache` reads the blocks and keeps them unrotated."""

    def __init__(self, cache: BlockCache, reader: PagedReader) -> None:
        self._cache, self._reader, self._pool = cache, reader, reader.pool
        self._taken_stacks = 0
        self._sides = LeastRecentlyUsed[tuple[TokenIds, ...], _Side](reader.pool.free)  # bounded by the pages

    def has_room(self) -> bool:
        """Whether one more fill is sure to find pages."""
        return (self._taken_stacks + 1) * LEAST_PAGES <= self._pool.keys.shape[1]

    def affordable(self, far: list[TokenIds], near: TokenIds, limit: int) -> list[TokenIds]:
        """See `BlockCache.affordable`."""
        sides = zip(self._sides, self._sides.values(), strict=True)
        stacks = {blocks: [stack.ids for stack in side.stacks] for blocks, side in sides}
        return self._cache.affordable_behind(stacks, far, near, limit)

    def take(self, far: list[TokenIds], near: TokenIds) -> ForwardSteps[tuple[PagedStack, int]]:
        """A stack for the near prefix, popped to what they share, and how many tokens have to be read for both.

        The caller reads the rest of the near prefix and must `release` the stack.
        """
        blocks, read = tuple(block for block in far if block), 0
        found: dict[TokenIds, KeyValueBlock] = {}
        if blocks not in self._sides:
            found, read = yield from self._cache.read(blocks[::-1])
        side = self._sides.get(blocks) or self._placed(blocks, [self._cache.start, *map(found.__getitem__, blocks)])
        stack = self._taken(side, near)
        return stack, read + len(near) - len(stack.ids)

    def catch_up(self, stack: PagedStack, ids: Sequence[int]) -> ForwardSteps[None]:
        """Read tokens in long passes until the rest, with one more token, fits a pass that decides."""
        while len(ids) - len(stack.ids) >= ROWS:
            done = len(stack.ids)
            yield from self.push(stack, ids[done : done + PREFILL_ROWS[-1]])

    def push(
        self,
        stack: PagedStack,
        ids: Sequence[int],
        draft: Sequence[int] = (),
        following: Sequence[NextToken] = (),
        meanwhile: Callable[[], object] | None = None,
    ) -> ForwardSteps[Decided]:
        """Read tokens and a draft after the stack, and decide what follows; all of them are then part of the stack.

        `meanwhile` is called while the pass runs.
        """
        start, rows = len(stack.ids), [*ids, *draft]
        stack.pages += self._free(self._pool.needed(start + len(rows)) - len(stack.pages))
        pages = [*stack.side.pages, *stack.pages]
        counts = stack.side.counts
        told: Decided = yield PagedRows(self._reader, rows, pages, counts, start, draft, following, meanwhile)
        stack.ids += rows
        return told

    def release(self, stack: PagedStack) -> None:
        """Let others use the stack."""
        stack.taken = False
        self._taken_stacks -= 1

    def forget(self) -> None:
        """Free the pages of everything that no fill uses."""
        self._evict(len(self._pool.keys[0]), None)

    def _placed(self, blocks: tuple[TokenIds, ...], read: list[KeyValueBlock]) -> _Side:
        tokens = sum(block.tokens for block in read)
        pages = self._free(self._pool.needed(tokens))
        return self._sides.put(blocks, _Side(self._reader.place(pages, read, -tokens)))

    def _taken(self, side: _Side, near: TokenIds) -> PagedStack:
        shared = ((common_prefix(each.ids, near), not each.taken, each) for each in side.stacks)
        kept, _, best = max(shared, key=lambda each: each[:2], default=(0, True, None))
        if best is None or best.taken or kept + ROWS < min(best.near, len(best.ids)):
            best = self._branch(side, best, kept)
        side.stacks.remove(best)
        side.stacks.append(best)
        del best.ids[kept:]
        best.near, best.taken = len(near), True
        self._taken_stacks += 1
        return best

    def _branch(self, side: _Side, source: PagedStack | None, kept: int) -> PagedStack:
        """Another stack of the side, with the first tokens of one that stays as it is."""
        idle = [stack for stack in side.idle() if stack is not source]
        for stack in idle[: max(0, len(idle) - KEPT_BRANCHES + 1)]:
            self._drop(side, stack)
        made = PagedStack(side.run)
        if source is not None and kept:
            made.pages = self._free(self._pool.needed(kept), side)
            self._pool.copy(source.pages[: len(made.pages)], made.pages)
            made.ids = source.ids[:kept]
        side.stacks.append(made)
        return made

    def _free(self, count: int, used: _Side | None = None) -> list[int]:
        """Free pages; what was unused for longest makes room."""
        if count > self._pool.free:
            self._evict(count, used)
        return self._pool.take(max(0, count))

    def _evict(self, count: int, used: _Side | None) -> None:
        for blocks, side in zip([*self._sides], self._sides.values(), strict=True):
            if self._pool.free >= count:
                break
            if side is used:
                continue
            for stack in side.idle():
                self._drop(side, stack)
            if not side.stacks:
                self._sides.pop(blocks)
                self._pool.give(side.run.pages)

    def _drop(self, side: _Side, stack: PagedStack) -> None:
        side.stacks.remove(stack)
        self._pool.give(stack.pages)


class FillContext:
    """The context of one fill, read into pages; its stack is its own until it is closed."""

    def __init__(self, contexts: PagedContexts) -> None:
        self._contexts = contexts
        self.stack: PagedStack | None = None

    def affordable(self, far: list[TokenIds], near: TokenIds, limit: int) -> list[TokenIds]:
        """See `BlockCache.affordable`."""
        return self._contexts.affordable(far, near, limit)

    def context(
        self, far: list[TokenIds], near: TokenIds, suffix: list[TokenIds], adapted: AdaptedTokens | None = None
    ) -> ForwardSteps[CachedContext]:
        """Read what is before the gap; the suffix would only be seen by a writer.

        The last few tokens of `near` are left to the first pass of the fill, but count as read.
        """
        assert adapted is None and self.stack is None
        self.stack, read = yield from self._contexts.take(far, near)
        yield from self._contexts.catch_up(self.stack, near)
        return CachedContext([], [], read)

    def close(self) -> None:
        """Let other fills use the stack."""
        if self.stack is not None:
            self._contexts.release(self.stack)
