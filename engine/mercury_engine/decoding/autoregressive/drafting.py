"""Drafts: the tokens that a pass verifies, found by n-gram lookup. They need no pass of their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from mercury_engine.api import FillRequest
from mercury_engine.decoding.autoregressive.ngram_lookup import IndexedText, NgramLookup, NgramMatch
from mercury_engine.decoding.context_reader import GapContext
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.kv_cache.read_ahead import TokenIds
from mercury_engine.lru import LeastRecentlyUsed
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.prompt.budget import LOOKUP_BLOCKS, LOOKUP_TOKENS, NEW_LOOKUP_BLOCKS
from mercury_engine.prompt.tokenizer import TokenArray, Tokenizer

REMEMBERED_LOOKUPS = 8
"""Contexts whose lookups are kept."""


@dataclass(frozen=True, slots=True)
class Drafter:
    """Drafts what follows one context."""

    before: TokenIds
    """Tokens of the text in front of what is written."""
    lookup: NgramLookup

    def match(self, written: Sequence[int]) -> NgramMatch:
        """The longest match of the last tokens."""
        return self.lookup.find((*self.before, *written))

    def draft(self, hypothesis: Hypothesis, most: int) -> list[int]:
        """At most `most` tokens: what followed the last tokens before.

        A single line is drafted up to its break, which needs no draft.
        """
        if hypothesis.spell:
            return []
        found = self.match(hypothesis.ids).draft[: min(most, hypothesis.capacity - len(hypothesis.ids) - 1)]
        texts = hypothesis.vocabulary.texts
        return found if hypothesis.multiline else [*takewhile(lambda token: "\n" not in texts[token], found)]


class Drafters:
    """Makes the drafters of one model; the lookups of the latest contexts are remembered."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._lookups = LeastRecentlyUsed[tuple[tuple[TokenIds, ...], tuple[str, ...]], NgramLookup](REMEMBERED_LOOKUPS)

    def of(self, context: GapContext, request: FillRequest) -> ForwardSteps[Drafter]:
        """Drafts from the context, and from the request's lookup text, which the model does not read."""
        lookup_text = request.lookup_text[-LOOKUP_BLOCKS:]
        if (lookup := self._lookups.get((context.far, lookup_text))) is None:
            runs = yield from self._tokenized(lookup_text, request.is_timed)
            lookup = NgramLookup(context.far, IndexedText(runs[::-1], LOOKUP_TOKENS) if runs else None)
            if len(runs) == len(lookup_text):
                self._lookups.put((context.far, lookup_text), lookup)
        return Drafter(context.text, lookup)

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
