"""Brackets and strings in source text, found by their characters alone.

There are two rules for strings; making them one would change suggestions:
- `outside_strings`, for deciding where a fill ends: an apostrophe after a letter or digit opens no string, since
  comments are prose, and a backslash escapes only inside strings.
- `code_outside_strings`, for lines of code around the cursor: every quote opens a string, a backslash escapes anywhere,
  and the caller may name the language's quotes and a string that is already open.
"""

from collections.abc import Iterator
from functools import lru_cache

OPENING, CLOSING = "([{", ")]}"

CLOSING_MARKS = ")]};,:"
"""Characters that close brackets, or parts of a line, without saying anything more.

After a gap they belong to its fill while that has a bracket open.
"""

CLOSER_OF = dict(zip(OPENING, CLOSING, strict=True))
OPENER_OF = dict(zip(CLOSING, OPENING, strict=True))

QUOTES = "\"'`"

REMEMBERED_TEXTS = 64
"""Number of texts whose brackets and strings are remembered: a fill asks about each of its beginnings several times."""


def bracket_step(character: str) -> int:
    """1 for an opening bracket, -1 for a closing one, 0 for anything else."""
    return (character in OPENING) - (character in CLOSING)


def code_outside_strings(text: str, quotes: str = QUOTES, quote: str = "") -> tuple[list[int], str]:
    """Positions outside strings and escapes, quotes left out, and the quote still open at the end ("" for none).

    `quote` is the one already open where the text begins.
    """
    positions: list[int] = []
    escaped = False
    for position, character in enumerate(text):
        if escaped or character == "\\":
            escaped = not escaped
        elif quote:
            quote = "" if character == quote else quote
        elif character in quotes:
            quote = character
        else:
            positions.append(position)
    return positions, quote


@lru_cache(REMEMBERED_TEXTS)
def has_open_bracket(text: str) -> bool:
    """Whether the text leaves a bracket open that it opens outside strings."""
    depth = 0
    for _, _, depth in outside_strings(text):  # noqa: B007
        pass
    return depth > 0


def open_brackets(text: str) -> list[str]:
    """The brackets outside strings that the text opens and leaves open, the innermost last."""
    opened: list[str] = []
    for _, character, _ in outside_strings(text):
        if character in CLOSER_OF:
            opened.append(character)
        elif opened and character == CLOSER_OF[opened[-1]]:
            opened.pop()
    return opened


def outside_strings(text: str) -> Iterator[tuple[int, str, int]]:
    """Position and character outside strings, with the bracket depth after it; -1 for a closer without an opener."""
    depth, starts = 0, string_starts(text)
    for position, character in enumerate(text):
        if starts[position] is None and starts[position + 1] is None:
            depth = max(0, depth) + bracket_step(character)
            yield position, character, depth


@lru_cache(REMEMBERED_TEXTS)
def string_starts(text: str) -> tuple[int | None, ...]:
    """Before each character and at the end: where the string open there begins, None outside strings."""
    start, escaped = None, False
    starts: list[int | None] = [None]
    for position, character in enumerate(text):
        if start is not None:
            start = None if character == text[start] and not escaped else start
            escaped = character == "\\" and not escaped
        elif character in '"`' or (character == "'" and not text[:position][-1:].isalnum()):
            start = position
        starts.append(start)
    return tuple(starts)
