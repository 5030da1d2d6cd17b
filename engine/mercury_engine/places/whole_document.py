"""An open file as the ranking of places reads it."""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

BLANK_LINES_SKIPPED = 4
"""Lines in which the indentation of a blank one is looked for, itself included."""

_DEFINITION = re.compile(
    r"^([ \t]*)(?:(?:export|default|pub(?:\([a-z]+\))?|static|async|public|private|protected|final|abstract|const"
    r"|unsafe|declare|local|inline|extern|virtual|override|synchronized)[ \t]+)*"
    r"(?:(?:def|class|func|fn|function|struct|enum|trait|interface|impl|type|namespace|module|mod)\b[ \t]*"
    r"(?:\([^)\n]*\)[ \t]*)?(?:<[^>\n]*>[ \t]*)?(\w+)"
    r"|(?:const|let|var)[ \t]+(\w+)[^=\n]*=[^=\n]*(?:=>|\bfunction\b)"
    r"|(?!(?:return|if|else|for|while|switch|case|throw|new|await|yield|elif|do|try|catch|with|in|and|or|not)\b)"
    r"(?:[\w<>\[\],.:*&]+[ \t]+)*[*&]*(\w+)\([^;\n]*(?:[{,(]|\)(?:[ \t]*->[^\n]*)?)[ \t]*$)",
    re.M,
)
"""A line that begins a function, a method or a type; by look, as files may be half typed. Words before a C function's
name end at blanks, so that a line of stars isn't split in every possible way."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a definition."""

    line: int
    indent: int
    name: str


@dataclass(frozen=True)
class WholeDocument:
    """A file by its path and its lines, which keep their line breaks."""

    path: str
    lines: tuple[str, ...]

    @cached_property
    def text(self) -> str:
        return "".join(self.lines)

    @cached_property
    def starts(self) -> list[int]:
        """The offset of every line, and of the end."""
        return list(accumulate(map(len, self.lines), initial=0))

    def is_header(self, line: int) -> bool:
        """Whether a definition begins on the line."""
        at = bisect_left(self._header_lines, line)
        return at < len(self._header_lines) and self._header_lines[at] == line

    @cached_property
    def headers(self) -> list[Header]:
        """The definitions, from top to bottom."""
        return [
            Header(self.line_at(each.start()), len(each[1].expandtabs(4)), each[2] or each[3] or each[4])
            for each in _DEFINITION.finditer(self.text)
        ]

    @cached_property
    def _header_lines(self) -> list[int]:
        return [header.line for header in self.headers]

    def line_at(self, offset: int) -> int:
        return min(max(0, bisect_right(self.starts, offset) - 1), max(0, len(self.lines) - 1))

    def indent(self, line: int) -> int:
        """Columns of white space before the line's text; for a blank line those of the next line with text."""
        for text in self.lines[line : line + BLANK_LINES_SKIPPED]:
            if bare := text.lstrip():
                return len(text[: len(text) - len(bare)].expandtabs(4))
        return 0

    def scope(self, line: int) -> Header | None:
        """The innermost definition around a line, judged by indentation; a header is in its own scope."""
        indent = self.indent(line)
        for header in reversed(self.headers[: bisect_right(self._header_lines, line)]):
            if header.line == line or header.indent < indent:
                return header
        return None

    def headers_around(self, line: int) -> list[int]:
        """The lines of the nearest two definitions above and below a line."""
        at = bisect_left(self._header_lines, line)
        return self._header_lines[max(0, at - 2) : at + 2]

    def lines_with(self, name: str, limit: int) -> list[int]:
        """The lines with a whole word, from top to bottom; empty if more than `limit` lines have it."""
        found: list[int] = []
        text, at = self.text, self.text.find(name)
        while at >= 0:
            end = at + len(name)
            if not (_is_part(text[at - 1 : at]) or _is_part(text[end : end + 1])):
                line = self.line_at(at)
                if not found or found[-1] != line:
                    found.append(line)
                if len(found) > limit:
                    return []
            at = text.find(name, end)
        return found


def _is_part(character: str) -> bool:
    """Whether a name may contain the character."""
    return character.isalnum() or character == "_"
