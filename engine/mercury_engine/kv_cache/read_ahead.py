"""Rows that passes have read after a near prefix, reused while the text agrees with them.

Typing a key often changes no token, or types what was predicted. Then the next fill needs the same rows again.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from mercury_engine.models.arrays import Array
from mercury_engine.models.network import KeyValueSegment, part_of
from mercury_engine.text.common_prefix import common_prefix

TokenIds = tuple[int, ...]

KEPT_ROWS = 64
"""Most rows that are kept of the latest passes; one takes 13 KB with the bundled model or the 0.5B."""


@dataclass(frozen=True, slots=True)
class ReadRows:
    """Consecutive rows: the last tokens of `ids`, which begin where the near prefix does."""

    ids: TokenIds
    side: KeyValueSegment
    hidden_TC: Array
    """Hidden states after the last norm."""

    @property
    def rows(self) -> int:
        return len(self.hidden_TC)

    @property
    def first(self) -> int:
        return len(self.ids) - self.rows

    def part(self, start: int, end: int) -> "ReadRows":
        """The rows of the tokens from `start` up to `end`."""
        first, last = start - self.first, end - self.first
        return ReadRows(self.ids[:end], part_of(self.side, first, last), self.hidden_TC[first:last])


class ReadAhead:
    """The rows of the latest passes behind the near prefixes of one place."""

    def __init__(self) -> None:
        self._passes: list[ReadRows] = []

    def find(self, ids: TokenIds, start: int) -> ReadRows | None:
        """The longest run of known rows that begins with the token at `start`; None if there is none."""
        known = [(start + common_prefix(each.ids[start:], ids[start:]), each) for each in self._fitting(ids, start)]
        end, found = max(known, key=lambda each: each[0], default=(start, None))
        return None if found is None else found.part(start, end)

    def _fitting(self, ids: TokenIds, start: int) -> Iterator[ReadRows]:
        """The passes that read the token at `start` after the same tokens; most differ there or just before."""
        last = ids[max(0, start - 1) : start + 1]
        for each in self._passes:
            near_it = each.ids[max(0, start - 1) : start + 1]
            if start < len(ids) and each.first <= start and near_it == last and each.ids[:start] == ids[:start]:
                yield each

    def put(self, read: ReadRows) -> None:
        """Keep the rows of a pass."""
        self._passes.insert(0, read)
        while sum(each.rows for each in self._passes) > KEPT_ROWS and len(self._passes) > 1:
            self._passes.pop()
