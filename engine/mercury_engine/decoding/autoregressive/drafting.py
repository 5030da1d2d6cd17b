"""Drafts: the tokens that a pass verifies, found by n-gram lookup. They need no pass of their own."""

from dataclasses import dataclass, field
from itertools import takewhile

from mercury_engine.decoding.autoregressive.ngram_lookup import NgramLookup, NgramMatch
from mercury_engine.decoding.context_reader import GapContext
from mercury_engine.decoding.hypothesis import Hypothesis


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens to verify."""

    ids: list[int] = field(default_factory=list)

    def agrees(self, place: int, token: int) -> bool:
        return place < len(self.ids) and self.ids[place] == token


class Drafter:
    """Drafts what follows one gap's context."""

    def __init__(self, context: GapContext, lookup: NgramLookup) -> None:
        self.lookup, self._text = lookup, context.text

    def draft(self, hypothesis: Hypothesis, most: int) -> Draft:
        """At most `most` tokens: what followed the last tokens before.

        A single line is drafted up to its break, which needs no draft.
        """
        if hypothesis.spell:
            return Draft()
        found = self.match(hypothesis).draft[: min(most, hypothesis.capacity - len(hypothesis.ids) - 1)]
        if hypothesis.multiline:
            return Draft(found)
        texts = hypothesis.vocabulary.texts
        return Draft([*takewhile(lambda token: "\n" not in texts[token], found)])

    def match(self, hypothesis: Hypothesis) -> NgramMatch:
        """The match of the last tokens before the next one."""
        return self.lookup.find((*self._text, *hypothesis.ids))
