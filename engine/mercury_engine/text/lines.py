"""The lines of a text, and where two sequences of lines or other texts differ."""

import re
from collections.abc import Sequence

from mercury_engine.text.common_prefix import common_prefix

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def lines_of(text: str) -> list[str]:
    """The lines with their line breaks; only `\\n` ends a line, as in git."""
    return _LINE.findall(text)


def indent_of(line: str) -> int:
    """The number of blanks that a line begins with."""
    return len(line) - len(line.lstrip())


def equal_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """The numbers of equal items at the start and, of the others, at the end."""
    first = common_prefix(old, new)
    return first, common_prefix(reversed(old[first:]), reversed(new[first:]))
