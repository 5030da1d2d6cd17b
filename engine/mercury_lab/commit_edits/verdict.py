"""Whether a shown edit is useful: it does something that the rest of the commit does, and nothing else.

Texts are sequences of words, marks and line breaks without other blanks. An edit is useful if

1. the text lies between the present one and the target, the present text with the changes that the edit touches: going
   there by way of the edit takes as many removed and inserted tokens as going straight (the length of an edit script of
   removals and insertions is a metric); and some word is among what the edit removes or inserts, or it is exact;
2. what it leaves to do does not begin or end, in the same line, where it did something: half of a replacement is wrong,
   one of two replacements in a line is useful, and so are the first of several inserted lines. At a line that the user
   has begun (a completion), its continuation may end early, at the end of a word, if it has ten characters or more.

It is exact if the text equals a target, blank lines at the end and blanks at the ends of lines aside.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from mercury_engine.text.lines import equal_ends, lines_of

from mercury_lab.editing.edit_figures import narrowed
from mercury_lab.editing.line_edits import LineEdit, is_exact
from mercury_lab.editing.scenarios import Scenario
from mercury_lab.evaluation.judge import STUB_CHARS

MAX_TOUCHED = 6
"""Wanted changes that an edit touches and whose combinations are targets; of more, single ones and all of them."""

MAX_LINES = 120
"""Lines from the first that differs to the last one; an edit of more is useful only if it is exact."""

_TOKEN = re.compile(r"\w+|[^\w\s]|\n")

Opcode = tuple[str, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a shown edit is worth."""

    is_useful: bool = False
    is_exact: bool = False


def judge(scenario: Scenario, edit: LineEdit) -> Verdict:
    """The verdict on an edit of the scenario's files as they are now."""
    now = scenario.now
    narrow = narrowed(now, edit)
    if narrow is None:
        return Verdict()
    old, new = now[edit.path], edit.apply(now)[edit.path]
    useful = False
    for target in _targets(scenario, now, narrow):
        if is_exact(new, target):
            return Verdict(True, True)
        useful = useful or is_on_the_way(old, new, target, _begins_line(scenario))
    return Verdict(useful)


def is_on_the_way(old: str, new: str, target: str, is_begun: bool = False) -> bool:
    """Whether `new` is a part of the way from `old` to `target`, as the module's docstring says."""
    first, last = _equal_ends([lines_of(text) for text in (old, new, target)])
    if max(len(lines_of(text)) for text in (old, new, target)) - first - last > MAX_LINES:
        return False
    before, between, after = (
        _tokens(lines_of(text)[first : len(lines_of(text)) - last]) for text in (old, new, target)
    )
    made, rest = opcodes(before, between), opcodes(between, after)
    words = [*(t for _, a, b, _, _ in made for t in before[a:b]), *(t for _, _, _, c, d in made for t in between[c:d])]
    if not any(re.match(r"\w", word) for word in words):
        return False
    if _length(made) + _length(rest) != _length(opcodes(before, after)):
        return False
    cuts = [cut for cut in _cuts(made, rest) if not _is_line_end(between, after, *cut)]
    if not cuts:
        return True
    inserted = sum(len(token) for _, _, _, c, d in made for token in between[c:d])
    return is_begun and inserted >= STUB_CHARS and all(op[0] == "insert" for op in rest)


def _targets(scenario: Scenario, now: Mapping[str, str], edit: LineEdit) -> Iterator[str]:
    """The file after the wanted changes that the edit touches: one of them, or several."""
    touched = [each for each in scenario.wants if each.touches(edit)]
    counts = range(1, len(touched) + 1) if len(touched) <= MAX_TOUCHED else (1, len(touched))
    for count in counts:
        for chosen in combinations(touched, count):
            files = dict(now)
            for each in reversed(chosen):  # wants are listed from top to bottom
                files = each.apply(files)
            yield files[edit.path]


def _begins_line(scenario: Scenario) -> bool:
    """Whether the user is within a line that a wanted change goes on with."""
    path, offset = scenario.cursor
    line = scenario.now[path].count("\n", 0, offset)
    return any(each.path == path and each.start <= line < each.end for each in scenario.wants)


def _equal_ends(texts: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Numbers of lines that all texts share at the start and at the end."""
    old, new, target = texts
    ends = equal_ends(list(old), list(new)), equal_ends(list(old), list(target))
    first = min(each[0] for each in ends)
    return first, min(*(each[1] for each in ends), min(map(len, texts)) - first)


def _tokens(lines: Sequence[str]) -> list[str]:
    """Words, marks, and a line break behind each line that isn't blank."""
    return [token for line in lines if line.strip() for token in _TOKEN.findall(line.rstrip() + "\n")]


def opcodes(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """A shortest edit script of removals and insertions, as difflib writes them."""
    return _script(tuple(old), tuple(new))


def _script(old: tuple[str, ...], new: tuple[str, ...]) -> list[Opcode]:
    """By the longest common subsequence, quadratic; difflib's own script isn't a shortest one."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    a, b = old[start : len(old) - end], new[start : len(new) - end]
    common = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) - 1, -1, -1):
        for j in range(len(b) - 1, -1, -1):
            same = a[i] == b[j]
            common[i][j] = common[i + 1][j + 1] + 1 if same else max(common[i + 1][j], common[i][j + 1])
    found, i, j = list[Opcode](), 0, 0
    while i < len(a) or j < len(b):
        if i < len(a) and j < len(b) and a[i] == b[j]:
            i, j = i + 1, j + 1
            continue
        first, second = i, j
        while (i < len(a) or j < len(b)) and not (i < len(a) and j < len(b) and a[i] == b[j]):
            if j == len(b) or (i < len(a) and common[i + 1][j] >= common[i][j + 1]):
                i += 1
            else:
                j += 1
        kind = "insert" if first == i else "delete" if second == j else "replace"
        found.append((kind, start + first, start + i, start + second, start + j))
    return found


def _length(script: Sequence[Opcode]) -> int:
    return sum(b - a + d - c for _, a, b, c, d in script)


def _cuts(made: Sequence[Opcode], rest: Sequence[Opcode]) -> Iterator[tuple[Opcode, Opcode]]:
    """Pairs of what was done and what is left that meet in the text between."""
    for done in made:
        for left in rest:
            if left[1] <= done[4] and done[3] <= left[2]:
                yield done, left


def _is_line_end(between: Sequence[str], after: Sequence[str], done: Opcode, left: Opcode) -> bool:
    """Whether they meet where a line ends, so that whole lines are done."""
    _, _, _, start, end = done
    if left[1] >= end:  # what is left comes behind
        inserted = after[left[3] : left[4]]
        breaks = end > start and between[end - 1] == "\n"
        return breaks or (end < len(between) and between[end] == "\n" and inserted[:1] == ["\n"])
    if left[2] <= start:  # before
        inserted = after[left[3] : left[4]]
        return inserted[-1:] == ["\n"] or (
            start > 0 and between[start - 1] == "\n" and end > start and between[end - 1] == "\n"
        )
    return False
