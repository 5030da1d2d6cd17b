"""Judges an edit by the edits that are right: its place, whether it is exact, and its characters.

Character F is the F1 of the characters that the edit removes and inserts against those of a right edit, blanks aside,
word by word; the best right edit counts. Leaving the text as it is has an F of 0, so the gain is F itself.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TypeVar

from mercury_engine.text.lines import equal_ends, lines_of

from mercury_lab.editing.line_edits import LineEdit, is_exact
from mercury_lab.editing.scenarios import Scenario

TOLERANCE_LINES = 3
"""Lines that a place may be away from an edit to which it leads."""

RESAMPLES = 1000
"""Bootstrap samples for an interval."""

_WORD = re.compile(r"\w+|[^\w\s]")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an edit is worth: `right_place` if it touches the lines of a right edit."""

    right_place: bool = False
    exact: bool = False
    character_f: float = 0.0


@dataclass(frozen=True, slots=True)
class _Change:
    """Offsets of removed words with their lengths, and inserted words in order."""

    removed: dict[int, int]
    inserted: tuple[str, ...]

    @property
    def characters(self) -> int:
        return sum(self.removed.values()) + sum(map(len, self.inserted))


def judge(scenario: Scenario, now: Mapping[str, str], edit: LineEdit) -> Verdict:
    """The verdict on an edit of the files as they are now."""
    path, old = edit.path, now[edit.path]
    if (narrow := narrowed(now, edit)) is None:
        return Verdict()
    new = edit.apply(now)[path]
    made, best = _change(old, new), Verdict()
    for right in _right(scenario, now, narrow):
        wanted = right[path]
        best = Verdict(True, best.exact or is_exact(new, wanted), max(best.character_f, _f(made, old, wanted)))
    return best


def leads_to_edit(scenario: Scenario, path: str, line: int) -> bool:
    """Whether a line is one of a right edit's, or at most `TOLERANCE_LINES` away; a gap is between two lines."""
    for each in (*scenario.wants, *scenario.others):
        first, last = (each.start, each.end - 1) if each.start < each.end else (each.start - 1, each.start)
        if each.path == path and first - TOLERANCE_LINES <= line <= last + TOLERANCE_LINES:
            return True
    return False


def narrowed(now: Mapping[str, str], edit: LineEdit) -> LineEdit | None:
    """The edit without the lines that it keeps at either end; None if it changes nothing."""
    old, new = lines_of(edit.removed(now)), lines_of(edit.text)
    first, last = equal_ends(old, new)
    if first == len(old) == len(new):
        return None
    text = "".join(new[first : len(new) - last])
    return LineEdit(edit.path, edit.start + first, edit.end - last, text)


def _right(scenario: Scenario, now: Mapping[str, str], edit: LineEdit) -> Iterator[dict[str, str]]:
    """The files after each right edit that the edit touches, and after all wanted ones that it touches."""
    touched = [right for right in (*scenario.wants, *scenario.others) if right.touches(edit)]
    for right in touched:
        yield right.apply(now)
    wanted = sorted((each for each in touched if each in scenario.wants), key=lambda each: -each.start)
    if len(wanted) > 1:
        files = dict(now)
        for each in wanted:
            files = each.apply(files)
        yield files


def _f(made: _Change, old: str, wanted_text: str) -> float:
    wanted = _change(old, wanted_text)
    removed = sum(length for at, length in made.removed.items() if at in wanted.removed)
    blocks = SequenceMatcher(None, made.inserted, wanted.inserted, autojunk=False).get_matching_blocks()
    inserted = sum(len(word) for block in blocks for word in made.inserted[block.a : block.a + block.size])
    total = made.characters + wanted.characters
    return 2 * (removed + inserted) / total if total else 1.0


def _change(old: str, new: str) -> _Change:
    """The words that differ; equal lines at both ends are not compared."""
    before, after = lines_of(old), lines_of(new)
    first, last = equal_ends(before, after)
    shift = sum(map(len, before[:first]))
    gone = [(shift + m.start(), m[0]) for m in _WORD.finditer("".join(before[first : len(before) - last]))]
    come = _WORD.findall("".join(after[first : len(after) - last]))
    removed, inserted = dict[int, int](), list[str]()
    matcher = SequenceMatcher(None, [word for _, word in gone], come, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            removed |= {at: len(word) for at, word in gone[a:b]}
            inserted += come[c:d]
    return _Change(removed, tuple(inserted))


def harmonic_mean(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a + b else 0.0


def bootstrap(
    items: Sequence[T], cluster: Callable[[T], str], figure: Callable[[Sequence[T]], float | None], seed: int
) -> tuple[float, float] | None:
    """The 95 % percentile interval of a figure; whole clusters are drawn, since positions of one file are alike."""
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(cluster(item), []).append(item)
    rng, keys = random.Random(seed), list(groups)
    drawn = ([item for key in rng.choices(keys, k=len(keys)) for item in groups[key]] for _ in range(RESAMPLES))
    found = sorted(value for value in map(figure, drawn) if value is not None) if keys else []
    return (found[len(found) // 40], found[-1 - len(found) // 40]) if found else None
