"""Where a text of several lines runs into the text below it, judged by lines and brackets."""

from mercury_engine.text.brackets import CLOSER_OF, bracket_step, outside_strings
from mercury_engine.text.lines import indent_of

LINES_BELOW = 8
"""Lines after the gap that are compared, blank ones not counted, up to the end of the block around it."""

MIN_REPEATED_CHARS = 12
"""Shortest line that counts as repeated wherever it stands below: `return nil` may well stand twice."""


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
