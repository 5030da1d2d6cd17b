"""Immutable text in chunks; an edit returns a new text that shares every untouched chunk.

Offsets count code points, LSP columns UTF-16 units, and tree-sitter bytes; conversions bisect the accumulated lengths
of the chunks. No chunk ends between CR and LF.

One key looks up the cursor's chunk and line some twenty times, so the last ones looked up are cached.
"""

import re
from collections.abc import Callable
from functools import cached_property, lru_cache
from operator import eq, sub

from mercury_engine.prompt.chunking import MAX_CHUNK_CHARS, split
from mercury_engine.text.common_prefix import common_text_ends

from mercury_lsp.documents.prefix_sums import PrefixSums
from mercury_lsp.documents.utf16 import chars_within, utf16_length

MAX_DOCUMENT_CHARS = 2_000_000
"""Longest document; nothing is suggested in a longer one, and its text is not kept."""

MIN_CHUNK_CHARS = 40
"""Shortest chunk, in characters; one that shrinks below this is merged with a neighbour."""

LONG_LINE_CHUNKS = 128
"""Chunks that a long line spans: 50,000 to 100,000 characters."""

_BREAK = re.compile(r"\r\n|\r|\n")
_NEWLINE = re.compile("\n")


class ChunkedText:
    """Text in chunks, with lookups in logarithmic time."""

    def __init__(
        self,
        chunks: tuple[str, ...],
        measures: tuple[tuple[int, ...], ...] | None = None,
        sums: tuple[PrefixSums, ...] | None = None,
    ):
        """`measures` and their `sums`, one per column, if known."""
        self.chunks = chunks
        self._measures = tuple(map(_measure, chunks)) if measures is None else measures
        if sums is None:
            columns = zip(*self._measures, strict=True) if self._measures else [()] * 5
            sums = tuple(map(PrefixSums.of, columns))
        self._sums = sums
        self.starts, self._units, self._bytes, self._breaks, self._newlines = sums
        """Counts before each chunk, and for the whole text; `starts` counts code points."""
        self.length = self.starts[-1]
        """Code points."""
        self._chunk = 0, -1, -1
        """The index, start and end of the chunk looked up last."""
        self._line: tuple[int, int, int] | None = None
        """The number, start and end of the line looked up last."""

    @classmethod
    def of(cls, text: str) -> "ChunkedText":
        """Text cut by `chunking.split`."""
        return cls(tuple(_join_crlf(split(text))))

    @property
    def byte_length(self) -> int:
        """Length in bytes, as `encode` encodes it."""
        return self._bytes[-1]

    @cached_property
    def has_long_line(self) -> bool:
        """Whether a line spans `LONG_LINE_CHUNKS` chunks."""
        breaks = list(self._breaks)
        return any(map(eq, breaks, breaks[LONG_LINE_CHUNKS:]))

    def chunk_at(self, offset: int) -> int:
        """Index of the chunk with the character before offset; 0 at the start."""
        return self._chunk_at(offset)[0]

    def slice(self, start: int, end: int) -> str:
        """The text in [start, end), both clamped."""
        start, end = max(0, start), min(end, self.length)
        if start >= end:
            return ""
        index, before, after = self._chunk
        if before <= start and end <= after:
            return self.chunks[index][start - before : end - before]
        first, last = self.starts.bisect_right(start) - 1, self.chunk_at(end)
        before = self.starts[first]
        if first == last:
            return self.chunks[first][start - before : end - before]
        head = self.chunks[first][start - before :]
        tail = self.chunks[last][: end - self.starts[last]]
        return "".join((head, *self.chunks[first + 1 : last], tail))

    def offset_at(self, line: int, column: int) -> int:
        """Offset of a UTF-16 position, clamped to its line; the end of the text if there is no such line."""
        if line > self._breaks[-1]:
            return self.length
        _, start, end = self._line_numbered(line)
        if not column:
            return start
        return min(self._offset_of_unit(self._units_before(start) + column), end)

    def position_at(self, offset: int) -> tuple[int, int]:
        """UTF-16 position of an offset, both clamped; an offset between CR and LF counts as the end of the line."""
        line, start, end = self._line_at(offset)
        return line, self._units_before(min(max(0, offset), end)) - self._units_before(start)

    def line_of(self, offset: int) -> int:
        """Number of the line that contains offset."""
        return self._line_at(offset)[0]

    def line_bounds(self, offset: int) -> tuple[int, int]:
        """Start and end, without terminator, of the line that contains offset."""
        return self._line_at(offset)[1:]

    def byte_of(self, offset: int) -> int:
        """Number of bytes before an offset."""
        index, before = self._locate(offset)
        return self._bytes[index] + len(encode(before))

    def offset_of_byte(self, byte: int) -> int:
        """Offset of the character that contains a byte; the inverse of `byte_of`."""
        if not self.chunks:
            return 0
        byte = min(byte, self.byte_length)
        index = max(0, self._bytes.bisect_left(byte) - 1)
        before = encode(self.chunks[index])[: byte - self._bytes[index]]
        return self.starts[index] + len(before.decode("utf-8", "ignore"))

    def byte_and_point_of(self, offset: int) -> tuple[int, tuple[int, int]]:
        """Bytes before an offset, and its tree-sitter point (row, column): only LF ends rows, columns count bytes."""
        index, before = self._locate(offset)
        byte, row = self._bytes[index] + len(encode(before)), self._newlines[index] + before.count("\n")
        start = self._end_of_break(row, self._newlines, _NEWLINE)[1]
        return byte, (row, byte - self.byte_of(start))

    def reader(self, end: int | None = None) -> Callable[[int, object], bytes]:
        """A read callback for a tree-sitter parser: returns the rest of the chunk at a byte; empty at the end.

        With `end`, the text seems to end after the chunk of that byte.
        """
        byte_starts, chunks = self._bytes, self.chunks
        count = len(chunks) if end is None else min(len(chunks), byte_starts.bisect_right(end))

        def read(byte: int, _: object) -> bytes:
            index = byte_starts.bisect_right(byte) - 1
            return encode(chunks[index])[byte - byte_starts[index] :] if index < count else b""

        return read

    def replace(self, start: int, end: int, new: str) -> "ChunkedText":
        """The text with `new` in place of [start, end); only touched chunks, and at most their neighbours, change.

        An insertion between two chunks goes to the first one, so that typing leaves the next one alone.
        """
        if not self.chunks:
            return ChunkedText.of(new)
        first, last = self._touched(start, end)
        before, after = self.slice(self.starts[first], start), self.slice(end, self.starts[last + 1])
        old_length = self.starts[last + 1] - self.starts[first]
        merged, first, last = self._grow(before + new + after, old_length, first, last)
        pieces = [merged] if len(merged) <= 2 * MAX_CHUNK_CHARS else _join_crlf(split(merged))
        pieces = [piece for piece in pieces if piece]
        if len(pieces) == 1 and first == last:
            return self._with_chunk(first, pieces[0])
        return ChunkedText(
            (*self.chunks[:first], *pieces, *self.chunks[last + 1 :]),
            (*self._measures[:first], *map(_measure, pieces), *self._measures[last + 1 :]),
        )

    def _with_chunk(self, index: int, chunk: str) -> "ChunkedText":
        """The text with another chunk in place of one."""
        measure = _measure(chunk)
        grown = map(sub, measure, self._measures[index])
        made = ChunkedText(
            (*self.chunks[:index], chunk, *self.chunks[index + 1 :]),
            (*self._measures[:index], measure, *self._measures[index + 1 :]),
            tuple(sums.with_change(index, by) for sums, by in zip(self._sums, grown, strict=True)),
        )
        if _breaks(chunk) and self.__dict__.get("has_long_line") is False:
            made.has_long_line = False  # no run of chunks without breaks has gained one
        return made

    def difference(self, text: str) -> tuple[int, int, str]:
        """The single edit (start, end, new) that turns this text into another."""
        lead, trail = common_text_ends("".join(self.chunks), text)
        return lead, self.length - trail, text[lead : len(text) - trail]

    def _touched(self, start: int, end: int) -> tuple[int, int]:
        if start == end:
            index = self.chunk_at(start)
            return index, index
        return self.starts.bisect_right(start) - 1, self.chunk_at(end)

    def _grow(self, merged: str, old_length: int, first: int, last: int) -> tuple[str, int, int]:
        """Merge with a neighbour if the touched chunk became tiny or a CR LF would be split."""
        became_tiny = not merged or len(merged) < MIN_CHUNK_CHARS <= old_length
        if first and (became_tiny or (merged.startswith("\n") and self.chunks[first - 1].endswith("\r"))):
            first -= 1
            merged, became_tiny = self.chunks[first] + merged, False
        follows = last + 1 < len(self.chunks)
        if follows and (became_tiny or (merged.endswith("\r") and self.chunks[last + 1].startswith("\n"))):
            last += 1
            merged += self.chunks[last]
        return merged, first, last

    def _locate(self, offset: int) -> tuple[int, str]:
        """The index of the chunk with the character before offset, and its text up to offset."""
        if not self.chunks:
            return 0, ""
        index, start, _ = self._chunk_at(offset)
        return index, self.chunks[index][: offset - start]

    def _chunk_at(self, offset: int) -> tuple[int, int, int]:
        """The index, start and end of the chunk with the character before offset."""
        known = self._chunk  # other threads may look up chunks, too
        if not known[1] < offset <= known[2]:
            index = max(0, self.starts.bisect_left(offset) - 1)
            known = self._chunk = index, self.starts[index], self.starts[min(index + 1, len(self.chunks))]
        return known

    def _line_at(self, offset: int) -> tuple[int, int, int]:
        """The number, start and end of the line that contains offset."""
        known = self._line  # other threads may look up lines, too
        if known is not None and known[1] <= offset <= known[2]:
            return known
        offset = min(max(0, offset), self.length)
        index, before = self._locate(offset)
        inside_crlf = before.endswith("\r") and self.chunks[index].startswith("\n", len(before))
        return self._line_numbered(self._breaks[index] + _breaks(before) - inside_crlf)

    def _line_numbered(self, line: int) -> tuple[int, int, int]:
        """A line's number, start and end."""
        known = self._line
        if known is None or known[0] != line:
            start = self._end_of_break(line, self._breaks, _BREAK)[1]
            is_last = line >= self._breaks[-1]
            end = self.length if is_last else self._end_of_break(line + 1, self._breaks, _BREAK)[0]
            known = self._line = line, start, end
        return known

    def _units_before(self, offset: int) -> int:
        index, before = self._locate(offset)
        return self._units[index] + utf16_length(before)

    def _offset_of_unit(self, unit: int) -> int:
        """Offset of a UTF-16 unit counted from the start; inside a surrogate pair, the offset before the pair."""
        if not self.chunks or unit >= self._units[-1]:
            return self.length
        index = max(0, self._units.bisect_right(unit) - 1)
        return self.starts[index] + chars_within(self.chunks[index], unit - self._units[index])

    def _end_of_break(self, number: int, column: PrefixSums, pattern: re.Pattern[str]) -> tuple[int, int]:
        """Start and end offset of the number-th line break, counted from 1; (0, 0) for number 0."""
        if number == 0:
            return 0, 0
        index = column.bisect_left(number) - 1
        start, end = _spans(pattern, self.chunks[index])[number - column[index] - 1]
        return self.starts[index] + start, self.starts[index] + end


def with_line_feeds(text: str) -> str:
    """The text with LF for CR LF, as the model reads it: after CR LF it is less sure of a line's end."""
    return text.replace("\r\n", "\n")


def with_plain_breaks(text: str) -> str:
    """The text with LF line breaks, as the model writes them; some clients insert the document's own kind."""
    return with_line_feeds(text).replace("\r", "\n")


def encode(text: str) -> bytes:
    """UTF-8 for tree-sitter: lone surrogates become `?`; NUL, which it takes for the end, becomes a blank."""
    return text.encode("utf-8", "replace").replace(b"\0", b" ")


@lru_cache(maxsize=256)
def _spans(pattern: re.Pattern[str], chunk: str) -> tuple[tuple[int, int], ...]:
    return tuple(map(re.Match.span, pattern.finditer(chunk)))


def _measure(chunk: str) -> tuple[int, ...]:
    """Code points, UTF-16 units, bytes, LSP line breaks, newlines."""
    return len(chunk), utf16_length(chunk), len(encode(chunk)), _breaks(chunk), chunk.count("\n")


def _breaks(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def _join_crlf(chunks: list[str]) -> list[str]:
    """Move an LF at the start of a chunk to the CR that ends the chunk before it."""
    for index in range(1, len(chunks)):
        if chunks[index].startswith("\n") and chunks[index - 1].endswith("\r"):
            chunks[index - 1] += "\n"
            chunks[index] = chunks[index][1:]
    return [chunk for chunk in chunks if chunk]
