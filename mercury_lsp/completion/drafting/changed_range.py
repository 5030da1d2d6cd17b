"""The range of lines that differ between two versions of a document; all ranges are in code points."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import is_

from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Edit

INDEX_SLICE_CHARS = 1500
"""Text indexed in one slice of work, about a millisecond."""

NEIGHBOUR_REACH_CHARS = 400
"""Characters from a line that are searched for its neighbour."""

OffsetRange = tuple[int, int]

_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class ChangedRange:
    """The text at [start, old_end) of one version became [start, new_end) of a later one; the rest is the same."""

    start: int
    old_end: int
    new_end: int

    @classmethod
    def between(cls, old: ChunkedText, new: ChunkedText) -> "ChangedRange":
        """The range outside of which both versions share their chunks; compares every chunk."""
        lead = _shared(old.chunks, new.chunks)
        trail = _shared(old.chunks[lead:][::-1], new.chunks[lead:][::-1])
        return cls(old.starts[lead], old.starts[len(old.chunks) - trail], new.starts[len(new.chunks) - trail])

    def then(self, edit: Edit) -> "ChangedRange":
        """The range of these changes and a later edit together."""
        end = edit.start + len(edit.removed)
        new_end = max(self.new_end, end) + len(edit.inserted) - len(edit.removed)
        return ChangedRange(min(self.start, edit.start), self.old_end + max(0, end - self.new_end), new_end)

    def fits(self, old: ChunkedText, new: ChunkedText) -> bool:
        """Whether the range agrees with the lengths of both versions."""
        return old.length - self.old_end == new.length - self.new_end >= 0

    def whole_lines(self, old: ChunkedText, new: ChunkedText) -> "ChangedRange":
        """The range extended to whole lines, terminators included.

        It may start between a CR and an LF inserted later, which adds a blank line and changes no other.
        """
        start = old.line_bounds(self.start)[0]
        end = line_after(old, self.old_end)
        return ChangedRange(start, end, new.length - (old.length - end))


def line_after(source: ChunkedText, offset: int) -> int:
    """The start of the line after the one that contains offset, or the end of the text."""
    end = source.line_bounds(offset)[1]
    terminator = source.slice(end, end + 2)
    return end + (2 if terminator == "\r\n" else min(1, len(terminator)))


def next_slice(source: ChunkedText, start: int, end: int) -> tuple[str, int]:
    """About `INDEX_SLICE_CHARS` of whole lines in [start, end), and the offset where they end.

    The text is empty if the first line alone is longer: such a line is skipped without copying it.
    """
    if end - start <= INDEX_SLICE_CHARS:
        return source.slice(start, end), end
    stop = source.line_bounds(start + INDEX_SLICE_CHARS)[0]
    if stop > start:
        return source.slice(start, stop), stop
    return "", min(end, line_after(source, start))


def lines_of(text: str) -> list[str]:
    """The non-blank lines of a text, with their indentation."""
    return [line for line in _BREAK.split(text) if line.strip()]


def line_above(source: ChunkedText, offset: int) -> str:
    """The nearest non-blank line above a line start; empty if there is none nearby."""
    start = max(0, offset - NEIGHBOUR_REACH_CHARS)
    lines = _BREAK.split(source.slice(start, offset))
    return next((line for line in reversed(lines[start > 0 :]) if line.strip()), "")


def line_below(source: ChunkedText, offset: int) -> str:
    """The nearest non-blank line from a line start on; empty if there is none nearby."""
    end = min(source.length, offset + NEIGHBOUR_REACH_CHARS)
    lines = _BREAK.split(source.slice(offset, end))
    return next((line for line in lines[: len(lines) - (end < source.length)] if line.strip()), "")


def _shared(ours: Sequence[str], theirs: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(bool, map(is_, ours, theirs)))
