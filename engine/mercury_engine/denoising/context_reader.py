"""Prepares a request's context: tokenizes it, trims it to the budget, prefills it and indexes its n-grams."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from mercury_engine.api import FillRequest
from mercury_engine.denoising.ngram_lookup import IndexedText, NgramLookup
from mercury_engine.denoising.verifier import CanvasContext
from mercury_engine.errors import Cancelled
from mercury_engine.kv_cache.cache import AdaptedTokens, BlockCache, CachedContext, TokenIds
from mercury_engine.lru import LeastRecentlyUsed
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.memory import return_freed_memory
from mercury_engine.prompt.budget import (
    LOOKUP_BLOCKS,
    LOOKUP_TOKENS,
    NEW_LOOKUP_BLOCKS,
    REST_TOKENS,
    far_part,
    near_part,
    suffix_part,
)
from mercury_engine.prompt.gap_format import GapMarkers, split_line
from mercury_engine.prompt.layout import rest_and_below
from mercury_engine.prompt.tokenizer import PrefixCut, TokenArray, Tokenizer

MANY_TOKENS_READ = 32
"""Tokens read on a CPU after which glibc holds so much freed memory that returning it is worth 10 ms."""

REMEMBERED_LOOKUPS = 8
"""Contexts whose n-gram lookups are kept."""


def far_blocks(tokenizer: Tokenizer, request: FillRequest) -> list[TokenIds]:
    """The blocks in front of the near prefix: those below the cursor's line, then the far ones; within the budget."""
    _, below = rest_and_below(request.suffix)
    return far_part([tokenizer.block(block) for block in (*reversed(below), *request.far)])


def lines_around(tokenizer: Tokenizer, request: FillRequest) -> tuple[TokenIds, TokenIds]:
    """In a gap format, the lines of the near prefix above the cursor's, and the rest of the cursor's line."""
    line, _ = rest_and_below(request.suffix)
    head = near_part(tokenizer.block(split_line(request.near)[0]))
    return tuple(head), tokenizer.block("".join(line))[:REST_TOKENS]


class ContextCache(Protocol):
    """Reads contexts and keeps what it read, as `BlockCache` does."""

    def affordable(self, far: list[TokenIds], near: TokenIds, limit: int) -> list[TokenIds]:
        """See `BlockCache.affordable`."""

    def context(
        self, far: list[TokenIds], near: TokenIds, suffix: list[TokenIds], adapted: AdaptedTokens | None = None
    ) -> ForwardSteps[CachedContext]:
        """See `BlockCache.context`."""


class ContextReader:
    """Reads contexts through the cache and remembers the n-gram lookups of the latest ones."""

    def __init__(self, cache: BlockCache, tokenizer: Tokenizer, markers: GapMarkers | None = None) -> None:
        self.cache, self.tokenizer, self.markers = cache, tokenizer, markers
        self._lookups = LeastRecentlyUsed[tuple[tuple[TokenIds, ...], tuple[str, ...]], NgramLookup](REMEMBERED_LOOKUPS)

    def cut(self, request: FillRequest) -> PrefixCut:
        """The text directly in front of the canvas, cut: the near prefix, or in a gap format the cursor's line."""
        return self.tokenizer.cut(request.near if self.markers is None else split_line(request.near)[1])

    def read(self, request: FillRequest, near: list[int], settled: int) -> ForwardSteps[CanvasContext]:
        """What a canvas behind the tokens of `near` sees, with its first slots settled; prefills only what is new.

        `near` is what `cut` said to read; in a gap format it belongs to the cursor's line.
        """
        return self.read_into(self.cache, request, near, settled)

    def read_into(
        self, cache: ContextCache, request: FillRequest, near: list[int], settled: int
    ) -> ForwardSteps[CanvasContext]:
        """`read` with another cache."""
        line, below = rest_and_below(request.suffix)
        adapted: AdaptedTokens | None = None
        far = far_blocks(self.tokenizer, request)
        if self.markers is None:
            text = ids = near_part(near) or (self.tokenizer.start_id,)
            suffix = suffix_part([self.tokenizer.block(block) for block in (*line, *below)])
        else:
            head, rest = lines_around(self.tokenizer, request)
            text = (*head, *near_part(near))
            ids, suffix = self.markers.stack(head, rest, near_part(near)), []
            if request.adapter in self.cache.network.adapters:
                lines = len(self.markers.parted(head, rest)[0])
                adapted = AdaptedTokens(request.adapter, ids[lines:-1])
        seen = far if request.unread_limit is None else cache.affordable(far, ids[:-1], request.unread_limit)
        if len(seen) < len(far):
            suffix = [*suffix[: len(line)], *(block for block in suffix[len(line) :] if block in seen)]
        prefix = ids[:-1] if adapted is None else ids[: -1 - len(adapted.ids)]
        context = yield from cache.context(seen, prefix, suffix, adapted)
        context.tokens_unread = sum(map(len, far)) - sum(map(len, seen))
        if context.tokens_read > MANY_TOKENS_READ and self.cache.network.device == "cpu":
            return_freed_memory()
        adapter = "" if adapted is None else adapted.adapter
        return CanvasContext(context, ids, text, settled, self._ngrams(far, request), adapter)

    def _ngrams(self, far: list[TokenIds], request: FillRequest) -> NgramLookup:
        lookup_text = request.lookup_text[-LOOKUP_BLOCKS:]
        key = (tuple(far), lookup_text)
        if (known := self._lookups.get(key)) is not None:
            return known
        runs = [*self._tokenized(lookup_text, request)]
        made = NgramLookup(far, IndexedText(runs[::-1], LOOKUP_TOKENS) if runs else None)
        return made if len(runs) < len(lookup_text) else self._lookups.put(key, made)

    def _tokenized(self, blocks: Sequence[str], request: FillRequest) -> Iterator[TokenArray]:
        """Tokens of the lookup text, the last block first; under a deadline stops after NEW_LOOKUP_BLOCKS new ones.

        Raises Cancelled.
        """
        new = 0
        for block in reversed(blocks):
            if request.cancel.is_set():
                raise Cancelled("superseded by a newer request")
            new += not self.tokenizer.has_lookup_block(block)
            if request.deadline_ms is not None and new > NEW_LOOKUP_BLOCKS:
                break
            yield self.tokenizer.lookup_block(block)
