"""Whole lines replaced, removed or inserted twice, and where that goes on.

The same lines are replaced or removed again. Lines are inserted between the same lines as in both examples, or else
between lines like theirs: those that have in common what the lines around both examples have in common.

    func TestA(t *testing.T) {        func TestB(t *testing.T) {
    +    t.Parallel()                 +    t.Parallel()               so        func TestC(t *testing.T) {

Lines with numbers that weren't there before are data: twice the same by chance, and the third time others.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from textwrap import indent

from mercury_engine.text.lines import equal_ends, lines_of

from mercury_lsp.completion.next_edits.edit_sites import EditSite, text_around
from mercury_lsp.completion.next_edits.examples import TOKEN, Example, margin, nearest
from mercury_lsp.documents.document import Snapshot

MIN_CHARS = 5
"""Shortest text that is looked for, without blanks: shorter ones stand everywhere."""

ANCHOR_LINES = 3
"""Lines before an insertion, and as many after it, that must be those of the examples, if these agree."""

MIN_LIKE_CHARS = 12
"""Letters and digits that the lines around both examples must have in common, or that a line must have."""

MAX_EQUAL_LINES = 3
"""Lines equal to that of an example; of more it isn't known which are meant."""

_PIECE = re.compile(r"\w+|\W")
_NUMBER = re.compile(r"(?<![\w.'\"-])\d+(?![\w'\"-])")

IsLike = Callable[[str], bool]
"""Whether a line, without the blanks at its ends, is one that is looked for."""


def same_lines(first: Example, second: Example, snapshot: Snapshot) -> Iterator[EditSite]:
    """The same lines; for an insertion, where the same lines stand before and after it."""
    old, (before, after) = [line.strip() for line in lines_of(second.old)], second.around(first)
    before, after = ([], []) if old else (before[-ANCHOR_LINES:], after[:ANCHOR_LINES])
    if len("".join("".join((*before, *old, *after)).split())) >= MIN_CHARS:
        same = [[partial(str.__eq__, line) for line in lines] for lines in (before, old, after)]
        yield from _sites(second, snapshot, *same)


def equal_lines(first: Example, second: Example, snapshot: Snapshot) -> Iterator[EditSite]:
    """A change within a line, in the few lines that are what the line of one of the examples was."""
    made = {old: new for old, new in (first.lines, second.lines) if sum(map(str.isalnum, old)) >= MIN_LIKE_CHARS}
    start, text = text_around(second.hunk.offset_in(snapshot), snapshot)
    lines = lines_of(text) if made else []
    starts = accumulate(map(len, lines), initial=start)
    equal = [(line, at) for line, at in zip(lines, starts, strict=False) if line.strip() in made]
    for line, at in equal if len(equal) <= MAX_EQUAL_LINES else []:
        old, new = (_PIECE.findall(text) for text in (line.strip(), made[line.strip()]))
        begin, end = equal_ends(old, new)
        column = len(margin([line])) + len("".join(old[:begin]))
        yield EditSite(at + column, "".join(old[begin : len(old) - end]), "".join(new[begin : len(new) - end]))


def between_like_lines(first: Example, second: Example, snapshot: Snapshot) -> Iterator[EditSite]:
    """For an insertion, where the nearest lines with text are like those of both examples."""
    before, after = second.before[::-1], second.after
    above, below = _in_common(first.before[::-1], before), _in_common(first.after, after)
    if second.old or sum(map(str.isalnum, "".join((*above[0], *above[1], *below[0], *below[1])))) < MIN_LIKE_CHARS:
        return
    over, under = ([*map(_is_blank, lines)].index(False) if any(lines) else 0 for lines in (before, after))
    yield from _sites(
        second,
        snapshot,
        [partial(_is_like, *above), *[_is_blank] * over],
        [],
        [*[_is_blank] * under, partial(_is_like, *below)],
    )


def _sites(
    example: Example, snapshot: Snapshot, before: Sequence[IsLike], old: Sequence[IsLike], after: Sequence[IsLike]
) -> Iterator[EditSite]:
    """The example's change wherever such lines follow each other, indented as there."""
    if not {*_NUMBER.findall(example.new)} <= {*_NUMBER.findall(example.old)}:
        return
    start, text = text_around(example.hunk.offset_in(snapshot), snapshot)
    lines, wanted = lines_of(text), (*before, *old, *after)
    bare, starts = [line.strip() for line in lines], [*accumulate(map(len, lines), initial=start)]
    for number in range(len(bare) - len(wanted) + 1):
        if all(is_like(bare[number + place]) for place, is_like in enumerate(wanted)):
            at, end = number + len(before), number + len(before) + len(old)
            blanks = margin(lines[at:end]) if old else _margin_between(example, lines, at)
            yield _site(starts[at], lines[at:end], indent(example.new, blanks), lines[end - 1] if end else "\n")


def _in_common(ours: Sequence[str], theirs: Sequence[str]) -> tuple[list[str], list[str]]:
    """The tokens with which the first lines that aren't blank begin, and those with which they end."""
    one, other = (TOKEN.findall(nearest(lines)) for lines in (ours, theirs))
    first, last = equal_ends(one, other)
    return one[:first], one[len(one) - last :]


def _is_like(start: Sequence[str], end: Sequence[str], line: str) -> bool:
    if not (line.startswith("".join(start[:1])) and line.endswith("".join(end[-1:]))):
        return False  # most lines, without looking at their tokens
    tokens = TOKEN.findall(line)
    is_long = len(tokens) >= len(start) + len(end)
    return is_long and tokens[: len(start)] == [*start] and tokens[len(tokens) - len(end) :] == [*end]


def _is_blank(line: str) -> bool:
    return not line


def _margin_between(example: Example, lines: Sequence[str], at: int) -> str:
    """The indentation of lines inserted at a line: as it is to the lines below and above in the example.

    Where both have it in the example, and not here, it is that of the line below, but for a bracket that closes.
    """
    above, own, below = example.margins
    over, under = nearest(lines[:at][::-1]), nearest(lines[at:])
    ends = not under or under.lstrip()[0] in ")]}"
    if own == below and not (own == above and ends):
        return margin([under])
    return margin([over]) + own[len(above) :] if own.startswith(above) else margin([under])


def _site(start: int, old: Sequence[str], new: str, last: str) -> EditSite:
    """Lines that become others, the `last` one of them or before them; that of a document may have no break."""
    if last.endswith("\n"):
        return EditSite(start, "".join(old), new)
    bare = new.removesuffix("\n").removesuffix("\r")
    return EditSite(start, "".join(old), bare if old else new[len(bare) :] + bare)
