"""Where the last tokens stand once more, and how they go on there.

It takes no forward pass, and code repeats itself. How they go on is a draft (prompt lookup decoding, Saxena 2023). In
text that the model does not read it is an opinion as well: an n-gram of unbounded order (Liu et al. 2024,
arXiv 2401.17377).

Dimensions: T tokens of a run, P places in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

TokenSequence = Sequence[int]

TokenArray = NDArray[np.int32]

PositionArray = NDArray[np.intp]

LONGEST_MATCH = 16
"""Tokens that are compared; a repeat that reaches further back is not preferred to one that reaches as far."""

MOST_POSITIONS = 4096
"""Of one token that are looked at, the nearest; some marks stand everywhere."""

COMPARED_IN_FULL = 64
"""Positions that are compared in all tokens at once."""

BOUNDARY = -1
"""Stands between blocks; no token."""


@dataclass(frozen=True, slots=True)
class NgramMatch:
    """The longest repeat of the last tokens, and of several as long the nearest."""

    length: int = 0
    """TokenSequence, up to `LONGEST_MATCH`."""
    draft: list[int] = field(default_factory=list)
    """How it goes on: at most as many tokens as repeat."""
    unread: Mapping[int, float] = field(default_factory=dict)
    """Shares of the tokens that follow where the model does not read; none when what it reads repeats as much."""


class NgramLookup:
    """Finds repeats in blocks that the model reads and in text elsewhere; nearer is what comes later in each."""

    def __init__(self, read: Sequence[TokenSequence] = (), lookup_text: "IndexedText | None" = None) -> None:
        self._read_T = np.array([BOUNDARY, *(token for block in read for token in (*block, BOUNDARY))], np.int32)
        self._elsewhere = lookup_text
        self._latest: tuple[TokenSequence, NgramMatch] = ((), NgramMatch())

    @property
    def has_unread(self) -> bool:
        """Whether there is text elsewhere."""
        return self._elsewhere is not None

    def find(self, before: TokenSequence) -> NgramMatch:
        """The repeat of the last tokens of `before`, which is read and looked through as well."""
        if before != self._latest[0]:
            self._latest = before, self._found(before)
        return self._latest[1]

    def _found(self, before: TokenSequence) -> NgramMatch:
        last_T = np.array([BOUNDARY, *before], np.int32)
        found = [(run_T, *_longest(run_T, last_T, _all_places(run_T, last_T[-1]))) for run_T in (last_T, self._read_T)]
        if self._elsewhere is not None:
            run_T = self._elsewhere.run_T
            found.append((run_T, *_longest(run_T, last_T, self._elsewhere.places(last_T[-1]))))
        run_T, length, places_P = max(found, key=lambda each: each[1])  # the first of equals
        if not length:
            return NgramMatch()
        at = int(places_P[-1])
        draft = run_T[at : at + length].tolist()
        draft = draft[: draft.index(BOUNDARY)] if BOUNDARY in draft else draft
        is_unread = self._elsewhere is not None and run_T is self._elsewhere.run_T
        return NgramMatch(length, draft, _shares(run_T[places_P]) if is_unread else {})


class IndexedText:
    """Text elsewhere as one run of at most so many tokens, the last ones; places in it are found by their token.

    Blocks follow on one another, but for where an empty one stands between them.
    """

    def __init__(self, blocks: Sequence[TokenArray], most: int) -> None:
        apart_T = np.array([BOUNDARY], np.int32)
        run_T = np.concatenate([block if len(block) else apart_T for block in blocks] or [apart_T])
        self.run_T = np.concatenate((apart_T, run_T[-most:], apart_T))
        halves_T = self.run_T.astype(np.uint16)  # the lower ones, which numpy sorts in linear time
        self._order_T = np.argsort(halves_T, kind="stable")
        self._sorted_T = halves_T[self._order_T]

    def places(self, token: np.int32) -> PositionArray:
        """Where a token stands, the last of very many."""
        half = token.astype(np.uint16)
        first, last = (int(np.searchsorted(self._sorted_T, half, side)) for side in ("left", "right"))
        places_P = self._order_T[max(first, last - MOST_POSITIONS) : last]
        return places_P[self.run_T[places_P] == token]


def _all_places(run_T: TokenArray, token: np.int32) -> PositionArray:
    return np.flatnonzero(run_T[:-1] == token)


def _longest(run_T: TokenArray, last_T: TokenArray, places_P: PositionArray) -> tuple[int, PositionArray]:
    """How many of the last tokens stand in a run once more, and the places behind them.

    Both begin with `BOUNDARY`; the places given are those of the last token.
    """
    if last_T[-1] == BOUNDARY:
        return 0, places_P
    places_P = places_P[run_T[places_P + 1] != BOUNDARY]
    length, most = min(1, len(places_P)), min(LONGEST_MATCH, len(last_T) - 1)
    while len(places_P) > COMPARED_IN_FULL and length < most:
        longer_P = places_P[run_T[places_P - length] == last_T[-1 - length]]
        if not len(longer_P):
            return length, places_P + 1
        length, places_P = length + 1, longer_P
    if length:
        back_T = np.arange(length, most)
        earlier_PT = np.maximum(places_P[:, None] - back_T, 0)  # there is no token at 0
        lengths_P = (run_T[earlier_PT] == last_T[-1 - back_T]).cumprod(1).sum(1)
        longest = int(lengths_P.max())
        length, places_P = length + longest, places_P[lengths_P == longest]
    return length, places_P + 1


def _shares(following_P: TokenArray) -> dict[int, float]:
    tokens, counts = np.unique(following_P, return_counts=True)
    return dict(zip(tokens.tolist(), (counts / len(following_P)).tolist(), strict=True))
