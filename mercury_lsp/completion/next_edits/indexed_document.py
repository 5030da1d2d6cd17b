"""An open document as the ranking of places reads it: words and definitions by line, kept up to date chunk by chunk."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from sys import intern
from time import perf_counter

from mercury_engine.places.situation import WORD, Header, definitions, indent_at, lines_with_word
from mercury_engine.text.lines import equal_ends, lines_of

from mercury_lsp.documents.document import Snapshot

MAX_HEADERS_CLIMBED = 200
"""Definitions above a line that are looked at for the one around it."""

CACHED_CHUNKS = 512
"""Chunks kept as lines."""

WORK_SLICE_SECONDS = 0.001
"""Duration of one slice of work."""


class _Chunk:
    """A chunk's words and definitions; `number` is its place in the version at hand."""

    __slots__ = ("breaks", "headers", "number", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.breaks = text.count("\n")
        self.number = 0
        self.words = tuple({intern(word) for word in WORD.findall(text)})
        found = definitions(text)
        self.headers = tuple((text.count("\n", 0, at), indent, name) for at, indent, name in found)

    def line(self, number: int) -> str:
        """A line, or the part of it in this chunk, with its break; empty after the last one."""
        lines = _lines(self.text)
        return lines[number] if number < len(lines) else ""


@lru_cache(CACHED_CHUNKS)
def _lines(text: str) -> list[str]:
    return lines_of(text)


class IndexedDocument:
    """Implements `places.situation.Readable`; only chunks that an edit touched are read again."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.snapshot: Snapshot | None = None
        self._chunks: list[_Chunk] = []
        self._with_word: dict[str, list[_Chunk]] = {}
        self._starts: list[int] = [0]
        self._with_headers: list[int] = []
        self._texts: tuple[str, ...] = ()
        self._indents: dict[int, int] = {}
        self._headers: dict[int, list[Header]] = {}
        """What was asked of this version: indentations by line, definitions by chunk."""
        self.line_count = 0

    def update(self, snapshot: Snapshot) -> bool:
        """Switch to a version; returns whether all of it is indexed, after a slice of time."""
        if self.snapshot is not None and self.snapshot.source is snapshot.source:
            return True
        texts, old = snapshot.chunks, self._chunks
        self._indents, self._headers = {}, {}
        lead, trail = equal_ends(texts, self._texts)  # nearly all chunks are the same objects
        wanted = texts[lead : len(texts) - trail]
        found = self._read(wanted)
        for chunk in old[lead : len(old) - trail]:
            for word in chunk.words:
                self._with_word[word].remove(chunk)
        for chunk in found:
            for word in chunk.words:
                self._with_word.setdefault(word, []).append(chunk)
        self._chunks = [*old[:lead], *found, *old[len(old) - trail :]]
        self._texts = tuple(chunk.text for chunk in self._chunks) if len(found) < len(wanted) else texts
        if len(found) < len(wanted):
            self.snapshot = None
            return False
        self.snapshot = snapshot
        self._renumber()
        return True

    def line(self, number: int) -> str:
        """One line, with its break; empty after the last one."""
        if not 0 <= number < self.line_count:
            return ""
        index = self._index_of(number)
        text = self._chunks[index].line(number - self._starts[index])
        while index + 1 < len(self._chunks) and not text.endswith("\n"):
            index += 1
            text += self._chunks[index].line(0)
        return text

    def lines_in(self, first: int, end: int) -> Sequence[str]:
        """As in `Readable`."""
        if first >= end:
            return []
        index = self._index_of(first)
        start = self._starts[index]
        found = _lines(self._chunks[index].text)[first - start : end - start]
        if found and not found[-1].endswith("\n"):
            found = found[:-1]
        after = first + len(found)
        return [*found, self.line(after), *self.lines_in(after + 1, end)] if after < end else found

    def head(self, count: int) -> Sequence[str]:
        """As in `Readable`."""
        number = bisect_left(self._starts, count)
        return lines_of("".join(self._texts[:number]))[:count]

    def indent(self, line: int) -> int:
        """As in `Readable`."""
        if line not in self._indents:
            self._indents[line] = indent_at(self, line)
        return self._indents[line]

    def is_header(self, line: int) -> bool:
        """As in `Readable`."""
        return any(header.line == line for header in self._headers_in(self._index_of(line)))

    def scope(self, line: int) -> Header | None:
        """As in `Readable`, but it gives up after MAX_HEADERS_CLIMBED definitions."""
        indent, climbed = self.indent(line), 0
        last = self._index_of(line)
        if not indent:
            return next((header for header in self._headers_in(last) if header.line == line), None)
        for at in range(bisect_right(self._with_headers, last) - 1, -1, -1):
            for header in reversed(self._headers_in(self._with_headers[at])):
                if header.line == line or (header.line < line and header.indent < indent):
                    return header
                climbed += 1
            if climbed > MAX_HEADERS_CLIMBED:
                return None
        return None

    def headers_around(self, line: int) -> list[int]:
        """As in `Readable`."""
        at = bisect_left(self._with_headers, self._index_of(line))
        near = self._with_headers[max(0, at - 2) : at + 3]
        lines = [header.line for index in near for header in self._headers_in(index)]
        middle = bisect_left(lines, line)
        return lines[max(0, middle - 2) : middle + 2]

    def lines_with(self, name: str, limit: int) -> list[int]:
        """As in `Readable`."""
        chunks = self._with_word.get(name, ())
        if len(chunks) > limit:
            return []
        found = {self._starts[chunk.number] + line for chunk in chunks for line in lines_with_word(chunk.text, name)}
        return sorted(found) if len(found) <= limit else []

    def _read(self, texts: Sequence[str]) -> list[_Chunk]:
        """The chunks of these texts, as many as time allows but at least one."""
        end = perf_counter() + WORK_SLICE_SECONDS
        found: list[_Chunk] = []
        for text in texts:
            found.append(_Chunk(text))
            if perf_counter() > end:
                break
        return found

    def _renumber(self) -> None:
        for number, chunk in enumerate(self._chunks):
            chunk.number = number
        self._starts = list(accumulate([chunk.breaks for chunk in self._chunks], initial=0))
        self._with_headers = [each.number for each in self._chunks if each.headers or not each.text.endswith("\n")]
        ends_in_break = not self._chunks or self._chunks[-1].text.endswith("\n")
        self.line_count = self._starts[-1] + (not ends_in_break)

    def _index_of(self, line: int) -> int:
        """The chunk in which a line begins."""
        index = min(max(0, bisect_right(self._starts, line) - 1), max(0, len(self._chunks) - 1))
        while index and self._starts[index] == line and not self._chunks[index - 1].text.endswith("\n"):
            index -= 1
        return index

    def _headers_in(self, index: int) -> list[Header]:
        if not self._chunks:
            return []
        if index not in self._headers:
            self._headers[index] = list(self._read_headers(index))
        return self._headers[index]

    def _read_headers(self, index: int) -> Iterator[Header]:
        """The definitions in the lines that begin in a chunk; the last of them may end in a later one."""
        chunk, start = self._chunks[index], self._starts[index]
        continues = index > 0 and not self._chunks[index - 1].text.endswith("\n")
        is_whole = chunk.text.endswith("\n")
        for line, indent, name in chunk.headers:
            if (line or not continues) and (line < chunk.breaks or is_whole):
                yield Header(start + line, indent, name)
        if not is_whole and (chunk.breaks or not continues):
            last = start + chunk.breaks
            yield from (Header(last, indent, name) for _, indent, name in definitions(self.line(last)))
