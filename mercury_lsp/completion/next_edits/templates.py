"""Repeats in a third line a change that two lines with different words have in common.

    -host = env.get("HOST")      +host = env["HOST"]
    -port = env.get("PORT")      +port = env["PORT"]      so      -user = env.get("USER")      +user = env["USER"]

A template is what both old lines share, first of the part that changed, then of the whole line. If it is too short to
be searched for, the third line must be as far from the second as that is from the first, and have the same indentation.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from mercury_engine.text.lines import equal_ends

from mercury_lsp.completion.next_edits.edits import near, text_around
from mercury_lsp.completion.next_edits.examples import Example, margin
from mercury_lsp.documents.document import Edit, Snapshot

MIN_CHARS = 8
"""Shortest text of a template that is searched for in the whole document."""

MAX_LINE_CHARS = 200
MAX_GROUPS, MAX_UNBOUNDED_GROUPS = 4, 2
"""Longest line compared, most differences, and most that are no words in a part of a line; all bound the work."""

MAX_STEP_LINES = 12
"""Most lines from one example to the next for a shorter template."""

_PIECE = re.compile(r"\w+|\s+|[^\w\s]")
_WORD = re.compile(r"\w+\Z")
_EDGE = "\n"
"""Neighbour of the first and last piece of a line."""


@dataclass(frozen=True, slots=True)
class _Template:
    """What both old lines have in common, and its replacement."""

    pattern: re.Pattern[str]
    """Matches lines like both; its group `old` is replaced, and each difference between the lines is a group."""
    new: tuple[str | int, ...]
    """The replacement: texts, and numbers of groups."""
    length: int
    """Number of common characters without blanks at their ends; 0 if the change only inserts."""
    longest: str
    """The longest common text."""
    column: int
    """Where the second line changed; the nearest match counts."""

    def edit(self, line: str, at: int) -> Edit | None:
        """The edit of the line at an offset, without equal ends; None if the line isn't like the examples."""
        text, margin = line.strip(), len(line) - len(line.lstrip())
        found = min(self.pattern.finditer(text), key=lambda each: abs(each.start("old") - self.column), default=None)
        if not text or found is None:
            return None
        old, new = found["old"], "".join(each if isinstance(each, str) else found[each] for each in self.new)
        first, last = equal_ends(old, new)
        start = at + margin + found.start("old") + first
        return Edit(start, old[first : len(old) - last], new[first : len(new) - last])


def template_edits(first: Example, second: Example, snapshot: Snapshot) -> Iterator[Edit]:
    """The lines in which the change of both examples, of one line each, can be made, in order."""
    if max(map(len, (*first.lines, *second.lines))) > MAX_LINE_CHARS:
        return
    for is_whole in (False, True):
        template = _template(first.lines, second.lines, is_whole)
        if template is not None and (found := [*_sites(template, first, second, snapshot)]):
            yield from found
            return


def _sites(template: _Template, first: Example, second: Example, snapshot: Snapshot) -> Iterator[Edit]:
    """The sites near the second example if the template is long enough, or else the one on the next line."""
    step = second.line - first.line
    if template.length >= MIN_CHARS:
        if first.key != second.key:  # equal texts of that length are looked for by themselves
            here = second.hunk.offset_in(snapshot)
            start, text = text_around(here, snapshot)
            found = re.finditer(re.escape(template.longest), text)
            starts = [*dict.fromkeys(start + text.rfind("\n", 0, each.start()) + 1 for each in found)]
            lines = (snapshot.line_at(at) for at in starts[near(starts, here)])
            yield from filter(None, (template.edit(*each) for each in lines if len(each[0]) <= MAX_LINE_CHARS))
    elif (
        first.hunk.uri == second.hunk.uri == snapshot.uri
        and 0 < abs(step) <= MAX_STEP_LINES
        and second.line + step >= 0
    ):
        (last, _), (line, at) = (
            snapshot.line_at(snapshot.source.offset_at(second.line + each, 0)) for each in (0, step)
        )
        if margin([line]) == margin([last]) and (site := template.edit(line, at)) is not None:
            yield site


@lru_cache  # needed at every key, for every open document
def _template(first: tuple[str, str], second: tuple[str, str], is_whole: bool) -> _Template | None:
    """The template of two changed lines, or of the part that changed; None if the new ones differ in anything else."""
    (left, old, new, right, _), (left_2, old_2, new_2, right_2, column) = (
        _cut(*each, is_whole) for each in (first, second)
    )
    groups: dict[tuple[str, str], int] = {}
    pattern, common = "", list[str]()
    for ours, theirs in _aligned(old, old_2):
        if ours == theirs:
            pattern += _bounded(ours)
            common.append(ours)
        elif (ours, theirs) in groups:
            pattern += rf"(?:\{groups[ours, theirs]})"
        else:
            groups[ours, theirs] = len(groups) + 2
            pattern += r"(\w+)" if _WORD.match(ours) and _WORD.match(theirs) else "(.+?)"
    made: list[str | int] = []
    for ours, theirs in _aligned(new, new_2):
        if ours != theirs and (ours, theirs) not in groups:
            return None
        made.append(ours if ours == theirs else groups[ours, theirs])
    unbounded, keeps_words = pattern.count("(.+?)"), any(isinstance(each, int) for each in made)
    if len(groups) > MAX_GROUPS or (unbounded > MAX_UNBOUNDED_GROUPS and not is_whole) or (groups and not keeps_words):
        return None
    before, after = ("" if one != two else one for one, two in ((left, left_2), (right, right_2)))
    if (not before and old[:1] != old_2[:1]) or (not after and old[-1:] != old_2[-1:]):
        return None
    length = sum(len(each.strip()) for each in (before, *common, after)) if old else 0
    head = "^" if before == _EDGE else rf"(?<={_bounded(before)})"
    tail = "$" if after == _EDGE else rf"(?={_bounded(after)})"
    compiled = re.compile(f"{head}(?P<old>{pattern}){tail}")
    return _Template(compiled, tuple(made), length, max((before, *common, after), key=len), column)


def _cut(old: str, new: str, is_whole: bool) -> tuple[str, list[str], list[str], str, int]:
    """The piece before a change, the old and new pieces, the piece after it, and its column; or all of the line."""
    ours, theirs = _PIECE.findall(old), _PIECE.findall(new)
    first, last = (0, 0) if is_whole else equal_ends(ours, theirs)
    before = ours[first - 1] if first else _EDGE
    after = ours[len(ours) - last] if last else _EDGE
    column = len("".join(ours[:first]))
    return before, ours[first : len(ours) - last], theirs[first : len(theirs) - last], after, column


def _bounded(text: str) -> str:
    """A text as a regular expression that neither begins nor ends within a word."""
    first, last = (r"\b" if each.isalnum() or each == "_" else "" for each in (text[:1], text[-1:]))
    return first + re.escape(text) + last


def _aligned(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pieces cut into equal and different parts, the latter word by word where both have as many words."""
    for kind, a, b, c, d in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if kind == "equal" or b - a != d - c:
            yield "".join(ours[a:b]), "".join(theirs[c:d])
        else:
            yield from zip(ours[a:b], theirs[c:d], strict=True)
