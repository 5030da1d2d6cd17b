"""Repeats in a third line a change that exchanged the same parts of two lines with different words.

    -host = env.get("HOST")      +host = env["HOST"]
    -port = env.get("PORT")      +port = env["PORT"]      so      -user = env.get("USER")      +user = env["USER"]

If the exchanged part, with what is next to it in both lines, is too short to be searched for, the third line must be as
far from the second as that is from the first, and have the same indentation.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache, partial

from mercury_engine.text.lines import equal_ends

from mercury_lsp.completion.next_edits.edit_sites import MAX_NEAR, EditSite, text_around
from mercury_lsp.completion.next_edits.examples import Example, margin
from mercury_lsp.documents.document import Snapshot

MIN_CHARS = 8
"""Shortest text of a template that is searched for in the whole document."""

MAX_LINE_CHARS = 200
MAX_GROUPS = 4
"""Longest line compared, and most different words; both bound the work."""

REMEMBERED_PAIRS = 256
"""Pairs of lines whose comparison is cached; it is needed at every key, for every open document."""

MAX_STEP_LINES = 12
"""Most lines from one example to the next for a shorter template."""

_PIECE = re.compile(r"\w+|\s+|[^\w\s]")
_EDGE = "\n"
"""Neighbour of the first and last piece of a line."""

Make = Callable[[str], str | None]
"""Returns the changed line, both without the blanks at their ends; None if the line isn't like the examples."""

Run = tuple[tuple[str, ...], tuple[str, ...]]
"""Pieces of a line, and their replacement."""

Runs = Sequence[tuple[Run, str, str, int]]
"""Runs, each with the pieces before and after it, empty where two lines differ, and its index in the line."""


def template_sites(first: Example, second: Example, snapshot: Snapshot) -> Iterator[EditSite]:
    """The lines in which the exchanges of both examples, of one line each, can be made, in order."""
    if max(map(len, (*first.lines, *second.lines))) > MAX_LINE_CHARS:
        return
    if runs := _common(_runs(first.lines), _runs(second.lines)):
        parts = ["".join((before, *old, after)).strip() for (old, _), before, after, _ in runs]
        length = sum(map(len, parts)) if runs[0][0][0] else 0
        make = partial(_made, runs=runs, parts=parts)
        if found := [*_lines(first, second, snapshot, make, length, max(parts, key=len))]:
            yield from found
            return
    yield from _lines(first, second, snapshot, *_pattern(first.lines, second.lines))


def _lines(
    first: Example, second: Example, snapshot: Snapshot, make: Make, length: int, needle: str
) -> Iterator[EditSite]:
    """The lines that `make` changes: near ones if the template is long enough, or else the next one."""
    if length >= MIN_CHARS and first.key != second.key:  # equal texts of that length are looked for by themselves
        here = second.hunk.offset_in(snapshot)
        start, text = text_around(here, snapshot)
        for at, line in _near_lines(needle, text, here - start):
            if len(line) <= MAX_LINE_CHARS:
                yield from _edits(line, start + at, make)
    step = second.line - first.line
    if (
        length < MIN_CHARS
        and first.hunk.uri == second.hunk.uri == snapshot.uri
        and 0 < abs(step) <= MAX_STEP_LINES
        and second.line + step >= 0
    ):
        (last, _), (line, at) = (
            snapshot.line_at(snapshot.source.offset_at(second.line + each, 0)) for each in (0, step)
        )
        if margin([line]) == margin([last]):
            yield from _edits(line, at, make)


def _near_lines(needle: str, text: str, at: int) -> Iterator[tuple[int, str]]:
    """The nearest lines with a text on either side of a line's start, with their own starts, in order."""
    above, below = list[tuple[int, str]](), at
    while len(above) < MAX_NEAR and (found := text.rfind(needle, 0, above[-1][0] if above else at)) >= 0:
        above.append(_line_at(text, found))
    yield from reversed(above)
    for _ in range(MAX_NEAR):
        if (found := text.find(needle, below)) < 0:
            return
        start, line = _line_at(text, found)
        below = start + len(line)
        yield start, line


def _line_at(text: str, offset: int) -> tuple[int, str]:
    start, end = text.rfind("\n", 0, offset) + 1, text.find("\n", offset)
    return start, text[start : end if end >= 0 else None]


@lru_cache(REMEMBERED_PAIRS)
def _pattern(first: tuple[str, str], second: tuple[str, str]) -> tuple[Make, int, str]:
    """What turns a line like both old ones into one like both new ones, the length of their common text, and the
    longest piece of it.

    Each difference between the old lines is a group, and each difference between the new ones must be such a group.
    """
    groups: dict[tuple[str, str], int] = {}
    pattern, length, longest = "", 0, ""
    for ours, theirs in _aligned(first[0], second[0]):
        if ours == theirs:
            pattern += re.escape(ours)
            length += len(ours.strip())
            longest = max(longest, ours, key=len)
        elif (ours, theirs) in groups:
            pattern += rf"(?:\{groups[ours, theirs]})"
        else:
            groups[ours, theirs] = len(groups) + 1
            pattern += "(.+?)"
    new: list[str | int] = []
    for ours, theirs in _aligned(first[1], second[1]):
        if ours != theirs and (ours, theirs) not in groups:
            return lambda line: None, 0, ""
        new.append(ours if ours == theirs else groups[ours, theirs])
    if not 0 < len(groups) <= MAX_GROUPS or all(isinstance(each, str) for each in new):
        return lambda line: None, 0, ""

    def make(line: str) -> str | None:
        found = re.fullmatch(pattern, line)
        return None if found is None else "".join(each if isinstance(each, str) else found[each] for each in new)

    return make, length, longest


def _aligned(first: str, second: str) -> Iterator[tuple[str, str]]:
    """Two lines cut into equal and different parts, the latter word by word where both have as many words."""
    ours, theirs = _PIECE.findall(first), _PIECE.findall(second)
    for kind, a, b, c, d in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if kind == "equal" or b - a != d - c:
            yield "".join(ours[a:b]), "".join(theirs[c:d])
        else:
            yield from zip(ours[a:b], theirs[c:d], strict=True)


def _edits(line: str, at: int, make: Make) -> Iterator[EditSite]:
    """The edit of a line, without equal ends, if `make` changes it."""
    old, new = line.strip(), make(line.strip())
    if old and new is not None:
        first, last = equal_ends(old, new)
        start = at + len(line) - len(line.lstrip()) + first
        yield EditSite(start, old[first : len(old) - last], new[first : len(new) - last])


@lru_cache(REMEMBERED_PAIRS)
def _runs(lines: tuple[str, str]) -> Runs:
    """What a line exchanged, and the neighbours of each exchange."""
    old, new = (_PIECE.findall(line) for line in lines)
    found = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            before, after = old[a - 1] if a else _EDGE, old[b] if b < len(old) else _EDGE
            found.append(((tuple(old[a:b]), tuple(new[c:d])), before, after, a))
    return found


def _common(ours: Runs, theirs: Runs) -> Runs:
    """The runs of both lines with their common neighbours; none if the runs differ."""
    if [run for run, *_ in ours] != [run for run, *_ in theirs]:
        return []
    return [
        (run, before if before == other else "", after if after == another else "", at)
        for (run, before, after, _), (_, other, another, at) in zip(ours, theirs, strict=True)
    ]


def _made(line: str, runs: Runs, parts: Sequence[str]) -> str | None:
    """The line with the exchanges made, each as near as possible to its place in the example; None if one doesn't fit.

    `parts`: the exchanged texts with their neighbours, which quickly rule out most lines.
    """
    if not all(part in line for part in parts):
        return None
    pieces, made, at = _PIECE.findall(line), list[str](), 0
    for (old, new), before, after, there in runs:
        places = [n for n in range(at, len(pieces) - len(old) + 1) if _fits(pieces, n, old, before, after)]
        if not places:
            return None
        place = min(places, key=lambda n: abs(n - there))
        made += [*pieces[at:place], *new]
        at = place + len(old)
    return "".join((*made, *pieces[at:]))


def _fits(pieces: Sequence[str], at: int, old: Sequence[str], before: str, after: str) -> bool:
    end = at + len(old)
    return (
        tuple(pieces[at:end]) == tuple(old)
        and before in ("", pieces[at - 1] if at else _EDGE)
        and after in ("", pieces[end] if end < len(pieces) else _EDGE)
    )
