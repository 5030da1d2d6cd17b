"""Where one thought of a text ends: a block, statements up to a blank line, or the definition around it.

Judged by indentation and by the words that begin definitions.
"""

import re
from collections.abc import Iterable

_CONTINUES = re.compile(r"[)\]}]|(?:end|else|elif|elseif|except|finally|catch|rescue|fi|done|esac)\b")
"""Beginnings of lines that belong to the block above them although they are not indented."""


_DEFINES = re.compile(
    r"(?:(?:export|default|public|private|protected|static|async|pub|local)\s+)*(?:class|def|fn|func|function|impl)\b"
)
"""Beginnings of lines that are the header of a definition."""


def thought_end(text: str, line: str) -> int | None:
    """The position before the first line that is a new thought; None if there is none.

    `line` is the cursor's line before the text. A thought ends before a line that is indented less than it began,
    before a blank line between statements, and before the first statement after its block.
    """
    first, *rows = text.split("\n")
    base, is_behind_block, position = _indent(line), False, len(first)
    end = len(first.rstrip())
    for row in rows:
        start, position = position + 1, position + 1 + len(row)
        indent, word = _indent(row), row.strip()
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
    header = _header_indent([begun, *reversed(above.split("\n"))], _indent(body))
    if header is None:
        return None
    end = position = len(first)
    for row in rows:
        start, position = position + 1, position + 1 + len(row)
        if row.strip() and _indent(row) <= header and not _CONTINUES.match(row.lstrip()):
            return end
        end = start + len(row.rstrip()) if row.strip() else end
    return None


def _header_indent(lines: Iterable[str], indent: int) -> int | None:
    """The indentation of the definition around a line that is indented so much; `lines` from there upwards."""
    for line in lines:
        if line.strip() and _indent(line) < indent:
            indent = _indent(line)
            if _DEFINES.match(line.lstrip()):
                return indent
    return None


def _indent(line: str) -> int:
    """The width of the blanks before a line, or of the whole line if it is blank; a tab counts as four."""
    return len(line[: len(line) - len(line.lstrip())].expandtabs(4))
