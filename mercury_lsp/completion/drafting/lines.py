"""Indexes lines of documents by their prefixes and by the line above them, within a memory budget."""

from collections import OrderedDict
from dataclasses import dataclass
from sys import getsizeof
from typing import NamedTuple

from mercury_lsp.completion.drafting.matching import MAX_DRAFT_LINE_CHARS, MIN_MATCH_CHARS, keys

LINES_PER_KEY = 16
"""Lines kept under one key: the latest ones."""

LINES_BELOW_KEPT = 2
"""Lines kept as standing below one line: the latest ones."""

LINE_BYTES = 400
KEY_BYTES = 170
REFERENCE_BYTES = 8
"""Bytes taken by a line without its text, by a key, and by a line under a key; measured with tracemalloc."""


class LineBelow(NamedTuple):
    """A line that stood below another one, with its relative indentation."""

    text: str
    deeper: str
    """Its indentation beyond that of the line above."""
    shallower: int
    """By how many characters it is indented less than the line above, if it is."""

    @classmethod
    def of(cls, above: str, below: str) -> "LineBelow":
        """From two lines with their indentation."""
        blanks, others = indentation(above), indentation(below)
        deeper = others.removeprefix(blanks) if others.startswith(blanks) else ""
        return cls(below.strip(), deeper, max(0, len(blanks) - len(others)))

    def completes(self, typed: str, above: str) -> str:
        """The rest of it where `typed` blanks stand below `above`; empty if they are indented differently."""
        blanks = indentation(above)
        blanks = blanks[: len(blanks) - self.shallower] + self.deeper
        return blanks.removeprefix(typed) + self.text if blanks.startswith(typed) else ""


@dataclass(slots=True, eq=False)
class IndexedLine:
    """A line of a document, counted once however often it occurs there."""

    document: int
    text: str
    """Stripped of the blanks around it."""
    stamp: int
    """Greater in lines added later."""
    count: int = 1
    below: tuple[LineBelow, ...] = ()


class LineIndex:
    """Lines by document number and text; beyond `budget` bytes the lines added least recently are dropped."""

    def __init__(self, budget: int):
        self._budget = budget
        self._lines: OrderedDict[tuple[int, str], IndexedLine] = OrderedDict()
        self._by_key: dict[int, tuple[IndexedLine, ...]] = {}
        self._references = 0
        self._text_bytes = 0
        self._stamp = 0

    @property
    def bytes(self) -> int:
        """Estimated memory use."""
        fixed = len(self._lines) * LINE_BYTES + len(self._by_key) * KEY_BYTES
        return fixed + self._references * REFERENCE_BYTES + self._text_bytes

    def add(self, document: int, text: str) -> None:
        """Add one occurrence of a line."""
        text = text.strip()
        if not MIN_MATCH_CHARS <= len(text) <= MAX_DRAFT_LINE_CHARS:
            return
        self._stamp += 1
        if (line := self._lines.get((document, text))) is not None:
            line.count, line.stamp = line.count + 1, self._stamp
            self._lines.move_to_end((document, text))
            return
        line = self._lines[document, text] = IndexedLine(document, text, self._stamp)
        self._text_bytes += getsizeof(text)
        for key in keys(text):
            held = self._by_key.get(key, ())
            self._keep(key, held, (*held, line)[-LINES_PER_KEY:])
        while self.bytes > self._budget:
            self._drop(self._lines.popitem(last=False)[1])

    def remove(self, document: int, text: str) -> None:
        """Remove one occurrence of a line, unless the line was dropped already."""
        text = text.strip()
        if (line := self._lines.get((document, text))) is None:
            return
        line.count -= 1
        if not line.count:
            del self._lines[document, text]
            self._drop(line)

    def link(self, document: int, above: str, below: str) -> None:
        """Record that one line stands below another; both are given with their indentation."""
        line, later = self.find(document, above), self.find(document, below)
        if line is None or later is None:
            return
        line_below = LineBelow.of(above, below)._replace(text=later.text)
        kept = [each for each in line.below if each != line_below and self.find(document, each.text)]
        line.below = (*kept, line_below)[-LINES_BELOW_KEPT:]

    def find(self, document: int, text: str) -> IndexedLine | None:
        """The line with this text, blanks around it aside."""
        return self._lines.get((document, text.strip()))

    def under(self, key: int) -> tuple[IndexedLine, ...]:
        """Lines that may match a prefix with this key."""
        return self._by_key.get(key, ())

    def _drop(self, line: IndexedLine) -> None:
        self._text_bytes -= getsizeof(line.text)
        for key in keys(line.text):
            held = self._by_key.get(key, ())
            if line in held:
                at = held.index(line)
                self._keep(key, held, held[:at] + held[at + 1 :])

    def _keep(self, key: int, held: tuple[IndexedLine, ...], kept: tuple[IndexedLine, ...]) -> None:
        self._references += len(kept) - len(held)
        if kept:
            self._by_key[key] = kept
        else:
            self._by_key.pop(key, None)


def indentation(line: str) -> str:
    """The blanks at the start of a line."""
    return line[: len(line) - len(line.lstrip())]
