"""What is known when the next place is asked for: open documents, the changes made so far, and the cursor.

Positions are lines, counted from 0, of the documents as they are now.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeVar

WORD = re.compile(r"[^\W\d]\w+")
"""Names and keywords of two characters or more."""

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


class Readable(Protocol):
    """What the candidates and their features need of an open file; lines keep their line breaks."""

    @property
    def path(self) -> str: ...

    @property
    def line_count(self) -> int: ...

    def line(self, number: int) -> str:
        """One line."""

    def lines_in(self, first: int, end: int) -> Sequence[str]:
        """Lines [first, end), which the document has."""

    def head(self, count: int) -> Sequence[str]:
        """The first lines, at most `count`."""

    def indent(self, line: int) -> int:
        """Columns of white space before the line's text; for a blank line those of the next line with text."""

    def scope(self, line: int) -> Header | None:
        """The innermost definition around a line, judged by indentation; a header is in its own scope."""

    def is_header(self, line: int) -> bool:
        """Whether a definition begins on the line."""

    def headers_around(self, line: int) -> list[int]:
        """The lines of the nearest two definitions above and below a line."""

    def lines_with(self, name: str, limit: int) -> list[int]:
        """The lines with a whole word, from top to bottom; empty if more than `limit` lines have it."""


@dataclass(frozen=True)
class LineChange:
    """Lines [start, end) of a document stand where the removed lines stood."""

    document: int
    start: int
    removed: tuple[str, ...]
    inserted: tuple[str, ...]

    @cached_property
    def end(self) -> int:
        return self.start + len(self.inserted)

    @cached_property
    def old_words(self) -> frozenset[str]:
        return frozenset(WORD.findall("".join(self.removed)))

    @cached_property
    def new_words(self) -> frozenset[str]:
        return frozenset(WORD.findall("".join(self.inserted)))


D = TypeVar("D", bound=Readable, covariant=True)


@dataclass(frozen=True)
class Situation(Generic[D]):
    """The documents, the changes in the order in which they were made, and the cursor's document and line."""

    documents: tuple[D, ...]
    changes: tuple[LineChange, ...]
    cursor: tuple[int, int]


def definitions(text: str) -> Iterator[tuple[int, int, str]]:
    """The offset, indentation and name of every definition in a text."""
    for found in _DEFINITION.finditer(text):
        yield found.start(), len(found[1].expandtabs(4)), found[2] or found[3] or found[4]


def lines_with_word(text: str, name: str) -> list[int]:
    """The lines of a short text that have a whole word, from top to bottom."""
    found: list[int] = []
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not (is_part(text[at - 1 : at]) or is_part(text[end : end + 1])):
            line = text.count("\n", 0, at)
            if not found or found[-1] != line:
                found.append(line)
        at = text.find(name, end)
    return found


def indent_at(document: Readable, line: int) -> int:
    """Columns of white space before the line's text; for a blank line those of the next line with text."""
    for number in range(line, min(line + BLANK_LINES_SKIPPED, document.line_count)):
        text = document.line(number)
        if bare := text.lstrip():
            return len(text[: len(text) - len(bare)].expandtabs(4))
    return 0


def is_part(character: str) -> bool:
    """Whether a name may contain the character."""
    return character.isalnum() or character == "_"
