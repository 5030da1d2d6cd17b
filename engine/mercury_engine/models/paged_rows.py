"""Rows that a reader reads into pages on its device and decides there; what the host says about them and gets back."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from mercury_engine.models.arrays import MaskArray


class TokenList(NamedTuple):
    """A set of tokens: a name that says all about it, and what makes it, bool [V]."""

    name: Hashable
    make: Callable[[], MaskArray]


@dataclass(frozen=True, slots=True)
class NextToken:
    """What may follow a row: all but the banned tokens; `stop` are those that mean the end, None where none does."""

    ban: TokenList
    stop: TokenList | None = None
    share: float = 0.0
    """Share of `pairs` in the distribution; the rest is the reader's."""
    pairs: Mapping[int, float] = field(default_factory=dict)
    """Tokens and their probabilities."""

    @property
    def lists(self) -> list[TokenList]:
        """The lists that it names."""
        return [self.ban] if self.stop is None else [self.ban, self.stop]


@dataclass(frozen=True, slots=True)
class PagedRows:
    """Rows of one request after what is in its pages; their keys and values are added there."""

    reader: "RowReader"
    ids: Sequence[int]
    """Tokens to read, those of the draft last."""
    pages: Sequence[int]
    """Pages of the far side, then of the near stack, with room for the rows."""
    far: Sequence[int]
    """Tokens in each page of the far side."""
    start: int
    """Tokens of the near stack in front of the rows; also the position of the first row."""
    draft: Sequence[int] = ()
    next: Sequence[NextToken] = ()
    """What may follow the last row that is no draft, and every row of the draft; empty to decide nothing."""
    meanwhile: Callable[[], object] | None = None
    """Work for the host while the pass runs; called once at most, and not begun when its result is there."""

    @property
    def rows(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Decided:
    """The best tokens after the rows up to the first wrong draft, and their probabilities."""

    tokens: Sequence[int] = ()
    probabilities: Sequence[float] = ()


class RowReader(Protocol):
    """Reads rows of several requests together."""

    def read_rows(self, requests: Sequence[PagedRows]) -> list[Decided]:
        """What is decided for each; nothing for rows without `next`."""
