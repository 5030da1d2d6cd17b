"""Which lines differ between two versions of a document; all ranges are code points."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import is_

from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Edit

INDEX_SLICE_CHARS = 1500
"""Text of this length is indexed in about one millisecond."""

NEIGHBOUR_REACH_CHARS = 400
"""A line's neighbour is looked for within so many characters."""

Range = tuple[int, int]

_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class ChangedRange:
    """The text [start, old_end) of one version stands at [start, new_end) in a later one; the rest is the same."""

    start: int
    old_end: int
    new_end: int

    @classmethod
    def between(cls, old: ChunkedText, new: ChunkedText) -> "ChangedRange":
        """The span outside of which both have the same chunks; looks at every chunk."""
        lead = _shared(old.chunks, new.chunks)
        trail = _shared(old.chunks[lead:][::-1], new.chunks[lead:][::-1])
        return cls(old.starts[lead], old.starts[len(old.chunks) - trail], new.starts[len(new.chunks) - trail])

    def then(self, edit: Edit) -> "ChangedRange":
        """The span of this one and an edit after it."""
        end = edit.start + len(edit.removed)
        new_end = max(self.new_end, end) + len(edit.inserted) - len(edit.removed)
        return ChangedRange(min(self.start, edit.start), self.old_end + max(0, end - self.new_end), new_end)

    def fits(self, old: ChunkedText, new: ChunkedText) -> bool:
        """Whether the lengths of both versions agree with the span."""
        return old.length - self.old_end == new.length - self.new_end >= 0

    def whole_lines(self, old: ChunkedText, new: ChunkedText) -> "ChangedRange":
        """A span of whole lines, terminators included, that holds this one.

        It may start between a CR and an LF that came later, which makes a blank line and changes no other.
        """
        start = old.line_bounds(self.start)[0]
        end = line_after(old, self.old_end)
        return ChangedRange(start, end, new.length - (old.length - end))


def line_after(source: ChunkedText, offset: int) -> int:
    """Where the line after that of offset starts, or the end of the text."""
    end = source.line_bounds(offset)[1]
    terminator = source.slice(end, end + 2)
    return end + (2 if terminator == "\r\n" else min(1, len(terminator)))


def next_slice(source: ChunkedText, start: int, end: int) -> tuple[str, int]:
    """Whole lines from start, about `INDEX_SLICE_CHARS` of those up to end, and where they end.

    No text when the first line alone is longer: such a line is passed over without a copy of it.
    """
    if end - start <= INDEX_SLICE_CHARS:
        return source.slice(start, end), end
    stop = source.line_bounds(start + INDEX_SLICE_CHARS)[0]
    if stop > start:
        return source.slice(start, stop), stop
    return "", min(end, line_after(source, start))


def lines_of(text: str) -> list[str]:
    """The lines of a text that are not blank, with their indentation."""
    return [line for line in _BREAK.split(text) if line.strip()]


def line_above(source: ChunkedText, offset: int) -> str:
    """The nearest line before a line start that is not blank; empty when there is none close by."""
    start = max(0, offset - NEIGHBOUR_REACH_CHARS)
    lines = _BREAK.split(source.slice(start, offset))
    return next((line for line in reversed(lines[start > 0 :]) if line.strip()), "")


def line_below(source: ChunkedText, offset: int) -> str:
    """The nearest line from a line start on that is not blank; empty when there is none close by."""
    end = min(source.length, offset + NEIGHBOUR_REACH_CHARS)
    lines = _BREAK.split(source.slice(offset, end))
    return next((line for line in lines[: len(lines) - (end < source.length)] if line.strip()), "")


def _shared(ours: Sequence[str], theirs: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(bool, map(is_, ours, theirs)))
