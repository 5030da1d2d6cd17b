"""Lines of documents, found by what they begin with and by the line before them, within a bound of memory."""

from collections import OrderedDict
from dataclasses import dataclass
from sys import getsizeof
from typing import NamedTuple

from mercury_lsp.completion.drafting.matching import MAX_DRAFT_LINE_CHARS, MIN_MATCH_CHARS, keys

LINES_PER_KEY = 16
"""So many lines are kept under one key, those that came last."""

LINES_BELOW_KEPT = 2
"""So many of the lines that came last behind a line are kept."""

LINE_BYTES = 400
KEY_BYTES = 170
REFERENCE_BYTES = 8
"""What a line without its text, a key and a line under a key cost; measured with tracemalloc."""


class LineBelow(NamedTuple):
    """A line that stood below another one."""

    text: str
    deeper: str
    """Its indentation beyond that of the line above."""
    shallower: int
    """How many characters less it is indented, when it is."""

    @classmethod
    def of(cls, above: str, below: str) -> "LineBelow":
        """Of two lines with their indentation."""
        blanks, others = indentation(above), indentation(below)
        deeper = others.removeprefix(blanks) if others.startswith(blanks) else ""
        return cls(below.strip(), deeper, max(0, len(blanks) - len(others)))

    def completes(self, typed: str, above: str) -> str:
        """What it lacks below a line where only blanks are typed; empty if it is indented differently."""
        blanks = indentation(above)
        blanks = blanks[: len(blanks) - self.shallower] + self.deeper
        return blanks.removeprefix(typed) + self.text if blanks.startswith(typed) else ""


@dataclass(slots=True, eq=False)
class IndexedLine:
    """A line of a document, wherever and however often it stands there."""

    document: int
    text: str
    """Without the blanks around it."""
    stamp: int
    """Lines that came later have a greater one."""
    count: int = 1
    followers: tuple[LineBelow, ...] = ()


class LineIndex:
    """Lines by document number and text; beyond `budget` bytes those go first that came, or came again, first."""

    def __init__(self, budget: int):
        self._budget = budget
        self._lines: OrderedDict[tuple[int, str], IndexedLine] = OrderedDict()
        self._by_key: dict[int, tuple[IndexedLine, ...]] = {}
        self._references = 0
        self._text_bytes = 0
        self._stamp = 0

    @property
    def bytes(self) -> int:
        """Memory in use, by estimate."""
        fixed = len(self._lines) * LINE_BYTES + len(self._by_key) * KEY_BYTES
        return fixed + self._references * REFERENCE_BYTES + self._text_bytes

    def add(self, document: int, text: str) -> None:
        """Take in one more occurrence of a line."""
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
        """One occurrence of a line is gone; nothing happens if it had made room for others."""
        text = text.strip()
        if (line := self._lines.get((document, text))) is None:
            return
        line.count -= 1
        if not line.count:
            del self._lines[document, text]
            self._drop(line)

    def link(self, document: int, above: str, below: str) -> None:
        """Take note that one line, given with its indentation, stands below another."""
        line, later = self.find(document, above), self.find(document, below)
        if line is None or later is None:
            return
        follower = LineBelow.of(above, below)._replace(text=later.text)
        kept = [each for each in line.followers if each != follower and self.find(document, each.text)]
        line.followers = (*kept, follower)[-LINES_BELOW_KEPT:]

    def find(self, document: int, text: str) -> IndexedLine | None:
        """A line by its text."""
        return self._lines.get((document, text.strip()))

    def under(self, key: int) -> tuple[IndexedLine, ...]:
        """Lines that may match what has the key."""
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
    """The blanks a line starts with."""
    return line[: len(line) - len(line.lstrip())]
