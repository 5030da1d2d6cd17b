"""What is known when the next place is asked for: open documents, the changes made so far, and the cursor.

Positions are lines, counted from 0, of the documents as they are now.
"""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

WORD = re.compile(r"[^\W\d]\w+")
"""Names and keywords of two characters or more."""

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
class Document:
    """An open file; lines keep their line breaks."""

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

    @cached_property
    def headers(self) -> list[Header]:
        """The definitions, from top to bottom."""
        found = _DEFINITION.finditer(self.text)
        return [Header(self.line_at(m.start()), len(m[1].expandtabs(4)), m[2] or m[3] or m[4]) for m in found]

    @cached_property
    def _header_lines(self) -> list[int]:
        return [header.line for header in self.headers]

    def line_at(self, offset: int) -> int:
        """The line that contains an offset."""
        return min(max(0, bisect_right(self.starts, offset) - 1), max(0, len(self.lines) - 1))

    def indent(self, line: int) -> int:
        """Columns of white space before the line's text; for a blank line those of the next line with text."""
        for text in self.lines[line : line + 4]:
            if text.strip():
                return len(text.expandtabs(4)) - len(text.expandtabs(4).lstrip())
        return 0

    def scope(self, line: int) -> Header | None:
        """The innermost definition around a line, judged by indentation; a header is in its own scope."""
        indent = self.indent(line)
        for header in self.headers[bisect_right(self._header_lines, line) - 1 :: -1]:
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


@dataclass(frozen=True)
class Change:
    """Lines [start, end) of a document stand where the removed lines stood."""

    document: int
    start: int
    removed: tuple[str, ...]
    inserted: tuple[str, ...]

    @property
    def end(self) -> int:
        return self.start + len(self.inserted)

    @cached_property
    def old_words(self) -> frozenset[str]:
        return frozenset(WORD.findall("".join(self.removed)))

    @cached_property
    def new_words(self) -> frozenset[str]:
        return frozenset(WORD.findall("".join(self.inserted)))


@dataclass(frozen=True)
class Situation:
    """The documents, the changes in the order in which they were made, and the cursor's document and line."""

    documents: tuple[Document, ...]
    changes: tuple[Change, ...]
    cursor: tuple[int, int]


def _is_part(character: str) -> bool:
    return character.isalnum() or character == "_"
