"""N-gram lookup: finds earlier occurrences of the last tokens and what follows them there.

Code repeats itself, and a lookup takes no forward pass. The tokens that follow a match are a draft (prompt lookup
decoding, Saxena 2023). In text that the model does not read they are an opinion as well: an n-gram model of unbounded
order (Liu et al. 2024, arXiv 2401.17377).

Dimensions: T tokens of a text, P positions in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mercury_engine.prompt.tokenizer import TokenArray

TokenSequence = Sequence[int]

PositionArray = NDArray[np.intp]

LONGEST_MATCH = 16
"""Tokens compared; a longer match is not preferred to one of this length."""

MOST_POSITIONS = 4096
"""Occurrences of one token that are considered, the nearest ones; some punctuation is everywhere."""

COMPARED_IN_FULL = 64
"""Number of positions up to which all tokens are compared at once, not one by one."""

BOUNDARY = -1
"""Separates blocks; not a token."""


@dataclass(frozen=True, slots=True)
class NgramMatch:
    """The longest match of the last tokens; of several equally long ones, the nearest."""

    length: int = 0
    """Tokens, up to `LONGEST_MATCH`."""
    draft: list[int] = field(default_factory=list)
    """The tokens that follow it, at most `length`."""
    support: list[int] = field(default_factory=list)
    """Number of matches as long, and behind each token of the draft how many of them go on like the draft up to it."""
    unread: Mapping[int, float] = field(default_factory=dict)
    """Shares of the tokens that follow matches in unread text; empty if read text has a match as long."""


class NgramLookup:
    """Finds matches in the blocks that the model reads and in unread text; in each, later text is nearer."""

    def __init__(self, read: Sequence[TokenSequence] = (), lookup_text: "IndexedText | None" = None) -> None:
        self._read_T = np.array([BOUNDARY, *(token for block in read for token in (*block, BOUNDARY))], np.int32)
        self._unread = lookup_text
        self._latest: tuple[TokenSequence, NgramMatch] = ((), NgramMatch())

    @property
    def has_unread(self) -> bool:
        """Whether there is unread text."""
        return self._unread is not None

    def find(self, before: TokenSequence) -> NgramMatch:
        """The match for the last tokens of `before`; `before` itself is searched too, as read text."""
        if before != self._latest[0]:
            self._latest = before, self._found(before)
        return self._latest[1]

    def _found(self, before: TokenSequence) -> NgramMatch:
        last_T = np.array([BOUNDARY, *before], np.int32)
        found = [
            (run_T, *_longest(run_T, last_T, _all_positions(run_T, last_T[-1]))) for run_T in (last_T, self._read_T)
        ]
        if self._unread is not None:
            run_T = self._unread.run_T
            found.append((run_T, *_longest(run_T, last_T, self._unread.positions(last_T[-1]))))
        run_T, length, positions_P = max(found, key=lambda each: each[1])  # the first of equals
        if not length:
            return NgramMatch()
        at = int(positions_P[-1])
        draft = run_T[at : at + length].tolist()
        draft = draft[: draft.index(BOUNDARY)] if BOUNDARY in draft else draft
        is_unread = self._unread is not None and run_T is self._unread.run_T
        return NgramMatch(
            length, draft, _support(run_T, positions_P, draft), _shares(run_T[positions_P]) if is_unread else {}
        )


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
        self._sorted_T = halves_T[self._order_T]

    def positions(self, token: np.int32) -> PositionArray:
        """Positions of a token; the last `MOST_POSITIONS` if there are more."""
        half = token.astype(np.uint16)
        first, last = (int(np.searchsorted(self._sorted_T, half, side)) for side in ("left", "right"))
        positions_P = self._order_T[max(first, last - MOST_POSITIONS) : last]
        return positions_P[self.run_T[positions_P] == token]


def _all_positions(run_T: TokenArray, token: np.int32) -> PositionArray:
    return np.flatnonzero(run_T[:-1] == token)


def _longest(run_T: TokenArray, last_T: TokenArray, positions_P: PositionArray) -> tuple[int, PositionArray]:
    """Length of the longest match of the last tokens in a text, and the positions behind such matches.

    Both arrays begin with `BOUNDARY`; `positions_P` are those of the last token in the text.
    """
    if last_T[-1] == BOUNDARY:
        return 0, positions_P
    positions_P = positions_P[run_T[positions_P + 1] != BOUNDARY]
    length, most = min(1, len(positions_P)), min(LONGEST_MATCH, len(last_T) - 1)
    while len(positions_P) > COMPARED_IN_FULL and length < most:
        longer_P = positions_P[run_T[positions_P - length] == last_T[-1 - length]]
        if not len(longer_P):
            return length, positions_P + 1
        length, positions_P = length + 1, longer_P
    if length:
        back_T = np.arange(length, most)
        earlier_PT = np.maximum(positions_P[:, None] - back_T, 0)  # there is no token at 0
        lengths_P = (run_T[earlier_PT] == last_T[-1 - back_T]).cumprod(1).sum(1)
        longest = int(lengths_P.max())
        length, positions_P = length + longest, positions_P[lengths_P == longest]
    return length, positions_P + 1


def _support(run_T: TokenArray, positions_P: PositionArray, draft: list[int]) -> list[int]:
    ends_PT = np.minimum(positions_P[:, None] + np.arange(len(draft)), len(run_T) - 1)
    agreed_T: PositionArray = (run_T[ends_PT] == draft).cumprod(1).sum(0)
    return [len(positions_P), *agreed_T.tolist()]


def _shares(following_P: TokenArray) -> dict[int, float]:
    tokens, counts = np.unique(following_P, return_counts=True)
    return dict(zip(tokens.tolist(), (counts / len(following_P)).tolist(), strict=True))
