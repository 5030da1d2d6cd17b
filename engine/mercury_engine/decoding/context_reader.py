"""Prepares a request's context: tokenizes it, trims it to the budget and prefills it."""

from mercury_engine.api import FillRequest
from mercury_engine.kv_cache.cache import AdaptedTokens, BlockCache, GapContext
from mercury_engine.kv_cache.read_ahead import TokenIds
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.memory import return_freed_memory
from mercury_engine.prompt.gap_format import GapMarkers, split_line
from mercury_engine.prompt.layout import REST_TOKENS, far_part, near_part, rest_and_below, suffix_part
from mercury_engine.prompt.tokenizer import PrefixCut, Tokenizer

BELOW_TOKENS = 192
"""Most tokens of the text after a gap that `ContextReader.read_whole` reads in the gap's format."""

MANY_TOKENS_READ = 32
"""Tokens read on a CPU after which glibc holds so much freed memory that returning it is worth 10 ms."""


def far_blocks(tokenizer: Tokenizer, request: FillRequest) -> list[TokenIds]:
    """The blocks in front of the near prefix: those below the cursor's line, then the far ones; within the budget."""
    _, below = rest_and_below(request.suffix)
    return far_part([tokenizer.block(block) for block in (*reversed(below), *request.far)])


def lines_around(tokenizer: Tokenizer, request: FillRequest) -> tuple[TokenIds, TokenIds]:
    """In a gap format, the lines of the near prefix above the cursor's, and the rest of the cursor's line."""
    line, _ = rest_and_below(request.suffix)
    head = near_part(tokenizer.block(split_line(request.near)[0]))
    return tuple(head), tokenizer.block("".join(line))[:REST_TOKENS]


class ContextReader:
    """Reads contexts through the cache."""

    def __init__(
        self, cache: BlockCache, tokenizer: Tokenizer, markers: GapMarkers | None = None, sees_after: bool = False
    ) -> None:
        """`sees_after`: the decoder sees the blocks after the gap where they are; a causal model sees them in front."""
        self.cache, self.tokenizer, self.markers, self._sees_after = cache, tokenizer, markers, sees_after

    def cut(self, request: FillRequest) -> PrefixCut:
        """The text directly in front of the gap, cut: the near prefix, or in a gap format the cursor's line."""
        return self.tokenizer.cut(request.near if self.markers is None else split_line(request.near)[1])

    def read(self, request: FillRequest, near: list[int], leaves: bool = False) -> ForwardSteps[GapContext]:
        """What is around a gap after the tokens of `near`; prefills only what is new, see `BlockCache.context`.

        `near` is what `cut` said to read; in a gap format it belongs to the cursor's line.
        """
        line, below = rest_and_below(request.suffix)
        adapted: AdaptedTokens | None = None
        far = far_blocks(self.tokenizer, request)
        if self.markers is None:
            text = ids = near_part(near) or (self.tokenizer.start_id,)
            after = (*line, *below) if self._sees_after else ()
            suffix = suffix_part([self.tokenizer.block(block) for block in after])
        else:
            head, rest = lines_around(self.tokenizer, request)
            text = (*head, *near_part(near))
            ids, suffix = self.markers.stack(head, rest, near_part(near)), []
            if request.adapter in self.cache.network.adapters:
                adapted = AdaptedTokens(request.adapter, len(self.markers.parted(head, rest)[0]))
        seen = far if request.unread_limit is None else self.cache.affordable(far, ids[:-1], request.unread_limit)
        if len(seen) < len(far):
            suffix = [*suffix[: len(line)], *(block for block in suffix[len(line) :] if block in seen)]
        context = yield from self.cache.context(seen, ids, suffix, adapted, leaves)
        context.text, context.far = text, tuple(far)
        context.tokens_unread = sum(map(len, far)) - sum(map(len, seen))
        if context.tokens_read > MANY_TOKENS_READ and self.cache.network.device == "cpu":
            return_freed_memory()
        return context

    def read_whole(self, request: FillRequest, near: list[int]) -> ForwardSteps[GapContext]:
        """What `read` reads in a gap format, with the text below the gap inside the format, as models are pretrained.

        That text is read again for every line, which is too much for a key.
        """
        assert self.markers is not None
        line, below = rest_and_below(request.suffix)
        after = self.tokenizer.block("".join((*line, *below)))[:BELOW_TOKENS]
        head, _ = lines_around(self.tokenizer, request)
        return (yield from self._alone(request, self.markers.stack(head, after, near_part(near))))

    def read_above(self, request: FillRequest, near: list[int]) -> ForwardSteps[GapContext]:
        """What is above the gap in a gap format's prefix, as if nothing stood after it."""
        head, _ = lines_around(self.tokenizer, request)
        return (yield from self._alone(request, (*head, *near_part(near)) or (self.cache.start_id,)))

    def _alone(self, request: FillRequest, ids: TokenIds) -> ForwardSteps[GapContext]:
        """Tokens read after the far blocks, without the blocks below the gap in front."""
        far = far_part([self.tokenizer.block(block) for block in request.far])
        context = yield from self.cache.context(far, ids, [])
        context.far = tuple(far)
        return context
