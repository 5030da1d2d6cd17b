"""Immutable text in chunks; an edit returns a new text that shares every untouched chunk.

Offsets count code points, LSP columns UTF-16 units, and tree-sitter bytes; conversions bisect the accumulated lengths
of the chunks. No chunk ends between CR and LF.

One key looks up the cursor's chunk and line some twenty times, so the last ones looked up are cached.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from operator import eq

from mercury_engine.prompt.chunking import MAX_CHUNK_CHARS, split
from mercury_engine.text.common_prefix import common_text_ends

from mercury_lsp.documents.utf16 import chars_within, utf16_length

MAX_DOCUMENT_CHARS = 2_000_000
"""Longest document; nothing is suggested in a longer one, and its text is not kept."""

MIN_CHUNK_CHARS = 40
"""Shortest chunk, in characters; one that shrinks below this is merged with a neighbour."""

LONG_LINE_CHUNKS = 128
"""Chunks that a long line spans: 50,000 to 100,000 characters."""

_BREAK, _LONE_RETURN = re.compile(r"\r\n|\r|\n"), re.compile(r"\r(?!\n)")


class PrefixSums:
    """`sums[i]` is the sum of the first i numbers, so the last one is the sum of all. Immutable.

    A key changes the length of one chunk, so all later sums change by the same amount: they are stored with that
    shift, and the next key in that chunk changes the shift alone. (In 20,000 lines, 1,701 chunks, summing again took
    0.2 ms of a key, and 0.6 ms with cold caches.)
    """

    __slots__ = ("_at", "_shift", "_stored")

    def __init__(self, stored: list[int], at: int = 0, shift: int = 0):
        """The stored sums; those after index `at` are too small by `shift`."""
        self._stored, self._at, self._shift = stored, at, shift

    @classmethod
    def of(cls, numbers: Iterable[int]) -> "PrefixSums":
        """The sums of these numbers, none of them negative."""
        return cls(list(accumulate(numbers, initial=0)))

    def replaced(self, start: int, end: int, numbers: Sequence[int]) -> "PrefixSums":
        """The sums with other numbers, at least one, in place of [start, end).

        Nothing is summed again if it is one number for one, as in the last change.
        """
        by = sum(numbers) + self[start] - self[end]
        if end - start == len(numbers) == 1 and (start == self._at or not self._shift):
            return PrefixSums(self._stored, start, self._shift + by)
        sums = list(self)
        new = accumulate(numbers[:-1], initial=sums[start])
        return PrefixSums([*sums[:start], *new, *sums[end:]], start + len(numbers) - 1, by)

    def first_above(self, value: int) -> int:
        """Index of the first sum that exceeds the value."""
        if value < self._stored[self._at]:
            return bisect_right(self._stored, value, 0, self._at + 1)
        return bisect_right(self._stored, value - self._shift, self._at + 1)

    def __getitem__(self, index: int) -> int:
        if index < 0:
            index += len(self._stored)
        return self._stored[index] + (self._shift if index > self._at else 0)

    def __iter__(self) -> Iterator[int]:
        return iter([*self._stored[: self._at + 1], *[each + self._shift for each in self._stored[self._at + 1 :]]])


class ChunkedText:
    """Text in chunks, with lookups in logarithmic time."""

    def __init__(self, chunks: tuple[str, ...], sums: tuple[PrefixSums, ...]):
        self.chunks, self._sums = chunks, sums
        self.starts, self._bytes, self._breaks = sums
        """Code points, bytes and line breaks before each chunk, and in the whole text."""
        self.length = self.starts[-1]
        """Code points."""
        self._chunk = 0, -1, -1
        """The index, start and end of the chunk looked up last."""
        self._line: tuple[int, int, int] | None = None
        """The number, start and end of the line looked up last."""

    @classmethod
    def of(cls, text: str) -> "ChunkedText":
        """Text cut by `chunking.split`."""
        chunks = tuple(_join_crlf(split(text)))
        return cls(chunks, tuple(map(PrefixSums.of, _measures(chunks))))

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
        first, last = self.starts.first_above(start) - 1, self.chunk_at(end)
        before = self.starts[first]
        return "".join(self.chunks[first : last + 1])[start - before : end - before]

    def offset_at(self, line: int, column: int) -> int:
        """Offset of a UTF-16 position, clamped to its line; the end of the text if there is no such line."""
        if line > self._breaks[-1]:
            return self.length
        _, start, end = self._line_numbered(line)
        return start + chars_within(self.slice(start, min(start + column, end)), column)

    def position_at(self, offset: int) -> tuple[int, int]:
        """UTF-16 position of an offset, both clamped; an offset between CR and LF counts as the end of the line."""
        line, start, end = self._line_at(offset)
        return line, utf16_length(self.slice(start, min(offset, end)))

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
        index = max(0, self._bytes.first_above(byte - 1) - 1)
        before = encode(self.chunks[index])[: byte - self._bytes[index]]
        return self.starts[index] + len(before.decode("utf-8", "ignore"))

    def byte_and_point_of(self, offset: int) -> tuple[int, tuple[int, int]]:
        """Bytes before an offset, and its tree-sitter point: the line, and the bytes before the offset in it."""
        (line, start, _), byte = self._line_at(offset), self.byte_of(offset)
        return byte, (line, byte - self.byte_of(start))

    def reader(self, end: int | None = None) -> Callable[[int, object], bytes]:
        """A read callback for a tree-sitter parser: returns the rest of the chunk at a byte; empty at the end.

        With `end`, the text seems to end after the chunk of that byte.
        """
        byte_starts, chunks = self._bytes, self.chunks
        count = len(chunks) if end is None else min(len(chunks), byte_starts.first_above(end))

        def read(byte: int, _: object) -> bytes:
            index = byte_starts.first_above(byte) - 1
            return encode(chunks[index])[byte - byte_starts[index] :] if index < count else b""

        return read

    def replace(self, start: int, end: int, new: str) -> "ChunkedText":
        """The text with `new` in place of [start, end); only touched chunks, and at most their neighbours, change.

        An insertion between two chunks goes to the first one, so that typing leaves the next one alone.
        """
        if end - start == self.length:
            return ChunkedText.of(new)
        last = self.chunk_at(end)
        first = last if start == end else self.starts.first_above(start) - 1
        before, after = self.slice(self.starts[first], start), self.slice(end, self.starts[last + 1])
        old_length = self.starts[last + 1] - self.starts[first]
        merged, first, last = self._grow(before + new + after, old_length, first, last)
        pieces = [merged] if len(merged) <= 2 * MAX_CHUNK_CHARS else _join_crlf(split(merged))
        measures = _measures(pieces)
        made = ChunkedText(
            (*self.chunks[:first], *pieces, *self.chunks[last + 1 :]),
            tuple(sums.replaced(first, last + 1, each) for sums, each in zip(self._sums, measures, strict=True)),
        )
        if self.__dict__.get("has_long_line") is False and all(measures[-1]):
            made.has_long_line = False  # no run of chunks without breaks has gained one
        return made

    def difference(self, text: str) -> tuple[int, int, str]:
        """The single edit (start, end, new) that turns this text into another."""
        lead, trail = common_text_ends("".join(self.chunks), text)
        return lead, self.length - trail, text[lead : len(text) - trail]

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
            index = max(0, self.starts.first_above(offset - 1) - 1)
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
            start = self._break(line)[1] if line else 0
            end = self.length if line >= self._breaks[-1] else self._break(line + 1)[0]
            known = self._line = line, start, end
        return known

    def _break(self, number: int) -> tuple[int, int]:
        """Start and end offset of the number-th line break, counted from 1."""
        index = self._breaks.first_above(number - 1) - 1
        start, end = _break_spans(self.chunks[index])[number - self._breaks[index] - 1]
        return self.starts[index] + start, self.starts[index] + end


def with_line_feeds(text: str) -> str:
    """The text with LF for CR LF, as the model reads it: after CR LF it is less sure of a line's end."""
    return text.replace("\r\n", "\n")


def with_plain_breaks(text: str) -> str:
    """The text with LF line breaks, as the model writes them; some clients insert the document's own kind."""
    return with_line_feeds(text).replace("\r", "\n")


def encode(text: str) -> bytes:
    """UTF-8 for tree-sitter: lone surrogates become `?`; NUL, which it takes for the end, a blank.

    CR alone becomes LF, because tree-sitter ends lines at LF only.
    """
    if text.count("\r") > text.count("\r\n"):
        text = _LONE_RETURN.sub("\n", text)
    return text.encode("utf-8", "replace").replace(b"\0", b" ")


@lru_cache(maxsize=256)
def _break_spans(chunk: str) -> tuple[tuple[int, int], ...]:
    return tuple(map(re.Match.span, _BREAK.finditer(chunk)))


def _measures(chunks: Sequence[str]) -> tuple[list[int], list[int], list[int]]:
    """Code points, bytes and line breaks of each chunk."""
    return list(map(len, chunks)), [len(encode(chunk)) for chunk in chunks], list(map(_breaks, chunks))


def _breaks(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def _join_crlf(chunks: list[str]) -> list[str]:
    """Move an LF at the start of a chunk to the CR that ends the chunk before it."""
    for index in range(1, len(chunks)):
        if chunks[index].startswith("\n") and chunks[index - 1].endswith("\r"):
            chunks[index - 1] += "\n"
            chunks[index] = chunks[index][1:]
    return [chunk for chunk in chunks if chunk]
