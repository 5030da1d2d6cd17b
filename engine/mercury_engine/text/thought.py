"""Where a text of several lines has said one thing: a block, or statements up to a blank line. By indentation alone."""

import re

_CONTINUES = re.compile(r"[)\]}]|(?:end|else|elif|elseif|except|finally|catch|rescue|fi|done|esac)\b")
"""Beginnings of lines that belong to the block above them although they are not indented."""


def thought_end(text: str, line: str) -> int | None:
    """The position before the first line that is a new thought; None if there is none.

    `line` is the cursor's line before the text. A thought ends before a line that is indented less than it began,
    before a blank line between statements, and before the first statement after its block.
    """
    first, *rows = text.split("\n")
    base, is_behind_block, position = _indent(line), bool(line.strip()), len(first)
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


def _indent(line: str) -> int:
    """The width of the blanks before a line, or of the whole line if it is blank; a tab counts as four."""
    return len(line[: len(line) - len(line.lstrip())].expandtabs(4))
