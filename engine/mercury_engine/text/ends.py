"""Where a text ends: at what stands after the gap, with its thought or definition, at a repeat or at a stop text.

Judged by characters alone: brackets, indentation, and the words that begin definitions.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from mercury_engine.text.brackets import (
    CLOSER_OF,
    CLOSING_MARKS,
    REMEMBERED_TEXTS,
    bracket_step,
    outside_strings,
)
from mercury_engine.text.lines import indent_of

LINES_BELOW = 8
"""Lines after the gap that are compared, blank ones not counted, up to the end of the block around it."""

MIN_REPEATED_CHARS = 12
"""Shortest line that counts as repeated wherever it stands below: `return nil` may well stand twice."""

LONGEST_BLOCK = 16
"""Most lines of a block that is recognised when it stands a second time, blank ones included."""

MOST_ALIKE = 3
"""Most lines in a row with the same words: of `print(add(1, 2))` and `print(add(3, 4))` the fourth is a repeat."""

_CONTINUES = re.compile(r"[)\]}]|(?:end|else|elif|elseif|except|finally|catch|rescue|fi|done|esac)\b")
"""Beginnings of lines that belong to the block above them although they are not indented."""

_DEFINES = re.compile(
    r"(?:(?:export|default|public|private|protected|static|async|pub|local)\s+)*(?:class|def|fn|func|function|impl)\b"
)
"""Beginnings of lines that are the header of a definition."""

_WORD = re.compile(r"[^\W\d_]+")


def first_line_end(text: str) -> int | None:
    """The position of the first line break; None if there is none."""
    at = text.find("\n")
    return None if at < 0 else at - text[:at].endswith("\r")


@lru_cache(REMEMBERED_TEXTS)
def find_end(text: str, follows: str) -> int | None:
    """The position where a text continues into the text after the gap; None if it does not.

    One token may hold both, as `")` does. The text continues there with a bracket that it did not open, or with a mark
    outside all brackets and strings.
    """
    if not follows or follows[0] not in CLOSING_MARKS:
        return None
    before = 0
    for at, character, depth in outside_strings(text):
        if character == follows[0] and not before and depth <= 0:
            return at
        before = max(0, depth)
    return None


def thought_end(text: str, line: str) -> int | None:
    """The position before the first line that is a new thought; None if there is none.

    `line` is the cursor's line before the text. A thought ends before a line that is indented less than it began,
    before a blank line between statements, and before the first statement after its block.
    """
    first, *rows = text.split("\n")
    base, is_behind_block, position = _width(line), False, len(first)
    end = len(first.rstrip())
    for row in rows:
        start, position = position + 1, position + 1 + len(row)
        indent, word = _width(row), row.strip()
        if not word:
            is_behind_block |= indent <= base and position < len(text)  # as if a block ended here
            continue
        closes = indent == base and _CONTINUES.match(word) is not None
        if indent < base or (indent == base and is_behind_block and not closes):
            return end
        is_behind_block = closes or indent > base
        end = start + len(row.rstrip())
    return None


def definition_end(text: str, line: str, above: str) -> int | None:
    """The position before the first line after the definition that the text is in, or begins; None if there is none.

    `line` is the cursor's line before the text, `above` the text before that line.
    """
    first, *rows = text.split("\n")
    begun = line + first
    body = next((row for row in (begun, *rows) if row.strip() and not _DEFINES.match(row.lstrip())), "")
    header = _header_indent([begun, *reversed(above.split("\n"))], _width(body))
    if header is None:
        return None
    end = position = len(first)
    for row in rows:
        start, position = position + 1, position + 1 + len(row)
        if row.strip() and _width(row) <= header and not _CONTINUES.match(row.lstrip()):
            return end
        end = start + len(row.rstrip()) if row.strip() else end
    return None


def overrun(text: str, line_prefix: str, following: str) -> int | None:
    """The position before the first line that is repeated below or closes too many brackets; None without one.

    `line_prefix` is the cursor's line before the text, `following` the document after the gap. If brackets are open,
    the position is before the line that opened them. The cursor's own line is only compared with the next one.
    """
    lines = text.split("\n")
    block = indent_of(next((line for line in (line_prefix + lines[0], *lines[1:]) if line.strip()), line_prefix))
    below = _below(following, block)
    depth = _opened_by(line_prefix, below)
    position = whole = 0
    """Where the line begins, and the last place where nothing was open."""
    for number, line in enumerate(lines):
        complete = (line_prefix if not number else "") + line
        if depth <= 0:
            whole = max(0, position - 1)
        closes = line.lstrip()[:1] in CLOSER_OF.values()
        if _stands_below(_bare(complete), below if number else below[:1]) and not (depth > 0 and closes):
            return whole
        depth, lowest = _depths(line, depth)
        if number and lowest < 0:
            return max(0, position - 1)
        position += len(line) + 1
    return None


def repeat_start(lines: list[str], checked: int = 0) -> int | None:
    """The first line of the first repeat: of a block that stands right above it; None without one.

    A block has a word. Blocks of several lines are compared without white space at their lines' ends. `checked`: number
    of lines at the start in which no repeat ends.
    """
    bare = [line.strip() for line in lines]
    for end in range(max(2, checked + 1), len(lines) + 1):
        for size in range(1, min(LONGEST_BLOCK, end // 2) + 1):
            start = end - size
            texts = lines if size == 1 else bare
            if texts[start - size : start] == texts[start:end] and any(map(_words, texts[start:end])):
                return start
        if end > MOST_ALIKE and _are_alike(lines[end - MOST_ALIKE - 1 : end]):
            return end - 1
    return None


def repeat_begun(lines: list[str]) -> int:
    """Number of lines at the end that may be the beginning of a repeat of those right above them."""
    bare = [line.strip() for line in lines]
    return max((_begun(bare, size) for size in range(2, min(LONGEST_BLOCK, len(lines)) + 1)), default=0)


def first_of(text: str, stops: Iterable[str], start: int = 0) -> int | None:
    """Where the first of the stop texts begins, none of them empty, from `start` on; None if there is none."""
    return min((at for each in stops if (at := text.find(each, start)) >= 0), default=None)


def begun(text: str, other: str) -> int:
    """Number of characters at the end of a text that may be the beginning of the other one, not all of it."""
    sizes = range(min(len(text), len(other) - 1), 0, -1)
    return next((size for size in sizes if other.startswith(text[-size:])), 0)


def _header_indent(lines: Iterable[str], indent: int) -> int | None:
    """The indentation of the definition around a line that is indented so much; `lines` from there upwards."""
    for line in lines:
        if line.strip() and _width(line) < indent:
            indent = _width(line)
            if _DEFINES.match(line.lstrip()):
                return indent
    return None


def _width(line: str) -> int:
    """The width of the blanks before a line, or of the whole line if it is blank; a tab counts as four."""
    return len(line[: len(line) - len(line.lstrip())].expandtabs(4))


def _below(following: str, block: int) -> list[str]:
    """The next line after the gap, and those after it that are indented at least as its block."""
    below = [_bare(line) for line in following.split("\n")[1:] if line.strip()][:LINES_BELOW]
    end = next((number for number, line in enumerate(below) if indent_of(line) < block), len(below))
    return below[: max(1, end)]


def _stands_below(line: str, below: list[str]) -> bool:
    """Whether a line is the next one, or a long one that comes soon, white space at its start aside; all are bare."""
    word = line.strip()
    if not word or not below:
        return False
    return line == below[0] or (len(word) >= MIN_REPEATED_CHARS and any(word == each.strip() for each in below))


def _opened_by(line_prefix: str, below: list[str]) -> int:
    """Brackets that the cursor's line leaves open and the document does not close below."""
    opened = 0
    for _, _, opened in outside_strings(line_prefix):  # noqa: B007
        pass
    closes = (
        bool(below) and below[0].lstrip()[0] in CLOSER_OF.values() and indent_of(below[0]) == indent_of(line_prefix)
    )
    return max(0, opened - closes)


def _depths(line: str, depth: int) -> tuple[int, int]:
    """The bracket depth after a line, and the lowest in it; lines are read one by one, for strings end with them."""
    lowest = depth
    for _, character, _ in outside_strings(line):
        depth += bracket_step(character)
        lowest = min(lowest, depth)
    return depth, lowest


def _bare(line: str) -> str:
    """A line without trailing blanks, commas and semicolons, unless it has nothing else."""
    return line.rstrip(" \t\r,;") or line.rstrip()


def _begun(lines: list[str], size: int) -> int:
    """The same for a block of `size` lines."""
    count = 0
    while count < size - 1 and len(lines) - count > size and lines[-1 - count] == lines[-1 - count - size]:
        count += 1
    return count


def _are_alike(lines: list[str]) -> bool:
    words = {_words(line) for line in lines}
    return len(words) == 1 and () not in words


def _words(line: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(line))
