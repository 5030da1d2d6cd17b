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

Tokens = Sequence[int]

Run = NDArray[np.int32]

LONGEST = 16
"""Tokens that are compared; a repeat that reaches further back is not preferred to one that reaches as far."""

APART = -1
"""Stands between blocks; no token."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """The longest repeat of the last tokens, and of several as long the nearest."""

    length: int = 0
    """Tokens, up to `LONGEST`."""
    draft: list[int] = field(default_factory=list)
    """How it goes on: at most as many tokens as repeat."""
    unread: Mapping[int, float] = field(default_factory=dict)
    """Shares of the tokens that follow where the model does not read; none when what it reads repeats as much."""


class Repeats:
    """Finds repeats in blocks that the model reads and in text elsewhere; nearer is what comes later in each."""

    def __init__(self, read: Sequence[Tokens] = (), elsewhere: Run | None = None) -> None:
        self._read_T = np.array([APART, *(token for block in read for token in (*block, APART))], np.int32)
        self._elsewhere_T = elsewhere if elsewhere is not None and len(elsewhere) else None

    @property
    def has_unread(self) -> bool:
        """Whether there is text elsewhere."""
        return self._elsewhere_T is not None

    def find(self, before: Tokens) -> Repeat:
        """The repeat of the last tokens of `before`, which is read and looked through as well."""
        if not before:
            return Repeat()
        last_T = np.array([APART, *before], np.int32)
        runs = [last_T, self._read_T] if self._elsewhere_T is None else [last_T, self._read_T, self._elsewhere_T]
        found = [(run_T, *_longest(run_T, last_T)) for run_T in runs]
        run_T, length, places_P = max(found, key=lambda each: each[1])  # the first of equals
        if not length:
            return Repeat()
        at = int(places_P[-1])
        draft = run_T[at : at + length].tolist()
        draft = draft[: draft.index(APART)] if APART in draft else draft
        return Repeat(length, draft, _shares(run_T[places_P]) if run_T is self._elsewhere_T else {})


def joined(blocks: Sequence[Run]) -> Run:
    """Text elsewhere as one run: most of its blocks follow on one another."""
    apart = np.array([APART], np.int32)
    return np.concatenate((apart, *blocks, apart))


def _longest(run_T: Run, last_T: Run) -> tuple[int, NDArray[np.intp]]:
    """How many of the last tokens stand in a run once more, and the places behind them; both begin with `APART`."""
    places_P = np.flatnonzero(run_T[:-1] == last_T[-1])
    places_P = places_P[run_T[places_P + 1] != APART]
    length = min(1, len(places_P))
    while 0 < length < min(LONGEST, len(last_T) - 1):
        longer_P = places_P[run_T[places_P - length] == last_T[-1 - length]]
        if not len(longer_P):
            break
        length, places_P = length + 1, longer_P
    return length, places_P + 1


def _shares(following_P: Run) -> dict[int, float]:
    tokens, counts = np.unique(following_P, return_counts=True)
    return dict(zip(tokens.tolist(), (counts / len(following_P)).tolist(), strict=True))
