"""Drafts: the tokens that a pass verifies, found by n-gram lookup: earlier occurrences of the last tokens.

Code repeats itself, and a lookup takes no forward pass. The tokens that follow a match are a draft (prompt lookup
decoding, Saxena 2023). In text that the model does not read they are an opinion as well: an n-gram model of unbounded
order (Liu et al. 2024, arXiv 2401.17377).

Dimensions: T tokens of a text, P positions in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from mercury_engine.api import FillRequest
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.kv_cache.cache import GapContext
from mercury_engine.kv_cache.read_ahead import TokenIds
from mercury_engine.lru import LeastRecentlyUsed
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.prompt.layout import LOOKUP_BLOCKS, LOOKUP_TOKENS, NEW_LOOKUP_BLOCKS
from mercury_engine.prompt.tokenizer import TokenArray, Tokenizer

TokenSequence = Sequence[int]

PositionArray = NDArray[np.intp]

LONGEST_MATCH = 16
"""Tokens compared; a longer match is not preferred to one of this length."""

MOST_POSITIONS = 4096
"""Occurrences of one token that are considered, the nearest ones; some punctuation is everywhere."""

COMPARED_IN_FULL = 64
"""Number of positions up to which all tokens are compared at once, not one by one."""

HALVES = 1 << 16
"""Different lower halves of tokens."""

BOUNDARY = -1
"""Separates blocks; not a token."""

REMEMBERED = 48
"""Texts whose matches are remembered: a pass and the one after it ask for up to 17 each."""

REMEMBERED_LOOKUPS = 8
"""Contexts whose lookups are kept."""


@dataclass(frozen=True, slots=True)
class NgramMatch:
    """The longest match of the last tokens; of several equally long ones, the nearest."""

    length: int = 0
    """Tokens, up to `LONGEST_MATCH`."""
    draft: list[int] = field(default_factory=list)
    """The tokens that follow it, at most `length`."""
    unread: Mapping[int, float] = field(default_factory=dict)
    """Shares of the tokens that follow matches in unread text; empty if read text has a match as long."""


class NgramLookup:
    """Finds matches in the blocks that the model reads and in unread text; in each, later text is nearer.

    Remembers the last texts, one of a length, so that a fill may look up what follows a draft before it is accepted.
    """

    def __init__(self, read: Sequence[TokenSequence] = (), lookup_text: "IndexedText | None" = None) -> None:
        self._read_T = np.array([BOUNDARY, *(token for block in read for token in (*block, BOUNDARY))], np.int32)
        self._unread = lookup_text
        self._known = LeastRecentlyUsed[int, tuple[TokenSequence, NgramMatch]](REMEMBERED)
        """By the number of tokens."""

    @property
    def has_unread(self) -> bool:
        return self._unread is not None

    def find(self, before: TokenSequence) -> NgramMatch:
        """The match for the last tokens of `before`; `before` itself is searched too, as read text."""
        known = self._known.get(len(before))
        if known is None or known[0] != before:
            known = self._known.put(len(before), (before, self._match(before)))
        return known[1]

    def _match(self, before: TokenSequence) -> NgramMatch:
        last_T, unread = np.array([BOUNDARY, *before], np.int32), self._unread
        searched = [(run_T, np.flatnonzero(run_T[:-1] == last_T[-1])) for run_T in (last_T, self._read_T)]
        if unread is not None:
            searched.append((unread.run_T, unread.positions(last_T[-1])))
        found = [(run_T, *_longest(run_T, last_T, positions_P)) for run_T, positions_P in searched]
        run_T, length, positions_P = max(found, key=lambda each: each[1])  # the first of equals
        if not length:
            return NgramMatch()
        at = int(positions_P[-1])
        draft = run_T[at : at + length].tolist()
        draft = draft[: draft.index(BOUNDARY)] if BOUNDARY in draft else draft
        is_unread = unread is not None and run_T is unread.run_T
        return NgramMatch(length, draft, _shares(run_T[positions_P]) if is_unread else {})


class IndexedText:
    """Unread text as one array of tokens, the last `most`; positions in it are found by token.

    Blocks are adjacent unless an empty block separates them.
    """

    def __init__(self, blocks: Sequence[TokenArray], most: int) -> None:
        apart_T = np.array([BOUNDARY], np.int32)
        run_T = np.concatenate([block if len(block) else apart_T for block in blocks] or [apart_T])
        self.run_T = np.concatenate((apart_T, run_T[-most:], apart_T))
        halves_T = self.run_T.astype(np.uint16)  # lower halves, which numpy sorts in linear time
        self._order_T = np.argsort(halves_T, kind="stable")
        self._ends = np.bincount(halves_T, minlength=HALVES).cumsum()
        """Where the tokens with each lower half end in order."""

    def positions(self, token: np.int32) -> PositionArray:
        """Positions of a token; the last `MOST_POSITIONS` if there are more."""
        half = int(token) % HALVES
        first, last = int(self._ends[half - 1]) if half else 0, int(self._ends[half])
        positions_P = self._order_T[max(first, last - MOST_POSITIONS) : last]
        return positions_P[self.run_T[positions_P] == token]


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
        texts = hypothesis.rules.texts
        return found if hypothesis.request.multiline else [*takewhile(lambda token: "\n" not in texts[token], found)]


class Drafters:
    """Makes the drafters of one model; the lookups of the latest contexts are remembered."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._lookups = LeastRecentlyUsed[tuple[tuple[TokenIds, ...], tuple[str, ...]], NgramLookup](REMEMBERED_LOOKUPS)

    def of(self, context: GapContext, request: FillRequest) -> ForwardSteps[Drafter]:
        """Drafts from the context, and from the request's lookup text, which the model does not read."""
        lookup_text = request.lookup_text[-LOOKUP_BLOCKS:]
        if (lookup := self._lookups.get((context.far, lookup_text))) is None:
            runs = yield from self._tokenized(lookup_text, request.deadline_ms is not None)
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


def _longest(run_T: TokenArray, last_T: TokenArray, positions_P: PositionArray) -> tuple[int, PositionArray]:
    """Length of the longest match of the last tokens in a text, and the positions after such matches.

    Both arrays begin with `BOUNDARY`; `positions_P` are those of the last token in the text.
    """
    if last_T[-1] == BOUNDARY:
        return 0, positions_P
    positions_P = positions_P[run_T[positions_P + 1] != BOUNDARY]
    if not len(positions_P):
        return 0, positions_P
    length, most = 1, min(LONGEST_MATCH, len(last_T) - 1)
    while len(positions_P) > COMPARED_IN_FULL and length < most:
        longer_P = positions_P[run_T[positions_P - length] == last_T[-1 - length]]
        if not len(longer_P):
            return length, positions_P + 1
        length, positions_P = length + 1, longer_P
    back_T = np.arange(length, most)
    earlier_PT = np.maximum(positions_P[:, None] - back_T, 0)  # there is no token at 0
    lengths_P = (run_T[earlier_PT] == last_T[-1 - back_T]).cumprod(1).sum(1)
    longest = int(lengths_P.max())
    return length + longest, positions_P[lengths_P == longest] + 1


def _shares(following_P: TokenArray) -> dict[int, float]:
    if len(following_P) == 1:
        return {int(following_P[0]): 1.0}
    tokens, counts = np.unique(following_P, return_counts=True)
    return dict(zip(tokens.tolist(), (counts / len(following_P)).tolist(), strict=True))
