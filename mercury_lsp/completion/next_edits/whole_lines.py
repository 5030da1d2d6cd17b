"""Repeats whole lines that were replaced, removed or inserted twice.

Lines with new numbers are data: twice the same by chance, and different the third time.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from textwrap import indent

from mercury_engine.text.lines import lines_of

from mercury_lsp.completion.next_edits.edits import near, text_around
from mercury_lsp.completion.next_edits.examples import Example, margin, nearest
from mercury_lsp.documents.document import Edit, Snapshot

MIN_CHARS = 5
"""Shortest text that is searched for, without blanks: shorter ones occur everywhere."""

ANCHOR_LINES = 3
"""Lines on either side of an insertion that must equal those of the examples, as far as these agree; the end of a
document counts as a blank line."""

_NUMBER = re.compile(r"(?<![\w.'\"-])\d+(?![\w'\"-])")


def same_lines(first: Example, second: Example, snapshot: Snapshot) -> Iterator[Edit]:
    """The same lines; for an insertion, the places between the same lines, with the example's indentation."""
    old, (before, after) = [line.strip() for line in lines_of(second.old)], second.around(first)
    before, after = ([], []) if old else (before[-ANCHOR_LINES:], after[:ANCHOR_LINES])
    wanted = before + old + after
    is_data = not {*_NUMBER.findall(second.new)} <= {*_NUMBER.findall(second.old)}
    if is_data or len("".join("".join(wanted).split())) < MIN_CHARS:
        return
    here = second.hunk.offset_in(snapshot)
    start, text = text_around(here, snapshot)
    lines = lines_of(text)
    bare, starts = [*map(str.strip, lines), ""], [*accumulate(map(len, lines), initial=start)]
    firsts = (number for number, line in enumerate(bare) if line == wanted[0])
    found = [number for number in firsts if bare[number : number + len(wanted)] == wanted]
    for number in found[near([starts[each] for each in found], here)]:
        at, end = number + len(before), number + len(before) + len(old)
        blanks = margin(lines[at:end]) if old else _margin_between(second, lines, at)
        yield _site(starts[at], lines[at:end], indent(second.new, blanks), lines[end - 1] if end else "\n")


def _margin_between(example: Example, lines: Sequence[str], at: int) -> str:
    """The indentation of lines inserted at a line: relative to the lines above and below as in the example.

    If both lines agree in the example, and not here, the line below decides, unless it begins with a closing bracket.
    """
    above, own, below = example.margins
    over, under = nearest(lines[:at][::-1]), nearest(lines[at:])
    ends = not under or under.lstrip()[0] in ")]}"
    if own == below and not (own == above and ends):
        return margin([under])
    return margin([over]) + own[len(above) :] if own.startswith(above) else margin([under])


def _site(start: int, old: Sequence[str], new: str, last: str) -> Edit:
    """The site that replaces lines; `last` is their last line, or the one before an insertion, and may lack a break."""
    if last.endswith("\n"):
        return Edit(start, "".join(old), new)
    bare = new.removesuffix("\n").removesuffix("\r")
    return Edit(start, "".join(old), bare if old else new[len(bare) :] + bare)
