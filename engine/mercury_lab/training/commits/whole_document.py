"""An open file in one piece, from which the ranking of places is trained; a server reads its documents in chunks."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from mercury_engine.places.situation import Header, definitions, indent_at, is_part


@dataclass(frozen=True)
class WholeDocument:
    """Implements `Readable` for an open file whose text is at hand; lines keep their line breaks."""

    path: str
    language: str
    lines: tuple[str, ...]

    @cached_property
    def text(self) -> str:
        return "".join(self.lines)

    @cached_property
    def starts(self) -> list[int]:
        """The offset of every line, and of the end."""
        return list(accumulate(map(len, self.lines), initial=0))

    @property
    def line_count(self) -> int:
        return len(self.lines)

    def line(self, number: int) -> str:
        return self.lines[number]

    def lines_in(self, first: int, end: int) -> Sequence[str]:
        return self.lines[first:end]

    def head(self, count: int) -> Sequence[str]:
        return self.lines[:count]

    def is_header(self, line: int) -> bool:
        at = bisect_left(self._header_lines, line)
        return at < len(self._header_lines) and self._header_lines[at] == line

    @cached_property
    def headers(self) -> list[Header]:
        """The definitions, from top to bottom."""
        return [Header(self.line_at(at), indent, name) for at, indent, name in definitions(self.text)]

    @cached_property
    def _header_lines(self) -> list[int]:
        return [header.line for header in self.headers]

    def line_at(self, offset: int) -> int:
        """The line that contains an offset."""
        return min(max(0, bisect_right(self.starts, offset) - 1), max(0, len(self.lines) - 1))

    def indent(self, line: int) -> int:
        return indent_at(self, line)

    def scope(self, line: int) -> Header | None:
        indent = self.indent(line)
        for header in reversed(self.headers[: bisect_right(self._header_lines, line)]):
            if header.line == line or header.indent < indent:
                return header
        return None

    def headers_around(self, line: int) -> list[int]:
        at = bisect_left(self._header_lines, line)
        return self._header_lines[max(0, at - 2) : at + 2]

    def lines_with(self, name: str, limit: int) -> list[int]:
        found: list[int] = []
        text, at = self.text, self.text.find(name)
        while at >= 0:
            end = at + len(name)
            if not (is_part(text[at - 1 : at]) or is_part(text[end : end + 1])):
                line = self.line_at(at)
                if not found or found[-1] != line:
                    found.append(line)
                if len(found) > limit:
                    return []
            at = text.find(name, end)
        return found
