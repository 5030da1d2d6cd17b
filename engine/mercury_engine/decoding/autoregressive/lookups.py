"""The n-gram lookups of the latest contexts, made of the blocks that were read and the text that was not."""

from collections.abc import Sequence

from mercury_engine.api import FillRequest
from mercury_engine.decoding.autoregressive.ngram_lookup import IndexedText, NgramLookup
from mercury_engine.kv_cache.read_ahead import TokenIds
from mercury_engine.lru import LeastRecentlyUsed
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.prompt.budget import LOOKUP_BLOCKS, LOOKUP_TOKENS, NEW_LOOKUP_BLOCKS
from mercury_engine.prompt.tokenizer import TokenArray, Tokenizer

REMEMBERED_LOOKUPS = 8
"""Contexts whose lookups are kept."""


class Lookups:
    """Makes lookups, and remembers the last ones."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._made = LeastRecentlyUsed[tuple[tuple[TokenIds, ...], tuple[str, ...]], NgramLookup](REMEMBERED_LOOKUPS)

    def of(self, far: tuple[TokenIds, ...], request: FillRequest) -> ForwardSteps[NgramLookup]:
        """The lookup in the far blocks and the request's lookup text."""
        lookup_text = request.lookup_text[-LOOKUP_BLOCKS:]
        if (known := self._made.get((far, lookup_text))) is not None:
            return known
        runs = yield from self._tokenized(lookup_text, request.is_timed)
        made = NgramLookup(far, IndexedText(runs[::-1], LOOKUP_TOKENS) if runs else None)
        return made if len(runs) < len(lookup_text) else self._made.put((far, lookup_text), made)

    def _tokenized(self, blocks: Sequence[str], is_timed: bool) -> ForwardSteps[list[TokenArray]]:
        """Tokens of the lookup text, the last block first; for a timed request at most NEW_LOOKUP_BLOCKS new ones.

        Pauses between new blocks, since they may be many.
        """
        runs, new = list[TokenArray](), 0
        for block in reversed(blocks):
            if not self._tokenizer.has_lookup_block(block):
                yield None
                new += 1
            if is_timed and new > NEW_LOOKUP_BLOCKS:
                break
            runs.append(self._tokenizer.lookup_block(block))
        return runs
