"""The changes of a commit, each as small as a user makes it, and which of them are alike.

A hunk whose lines all change in the same way, as in a column of fields, counts as one change a line.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from mercury_lab.training.commits.history import LineHunk

MIN_PAIR_LIKENESS = 0.5
"""Least share of equal tokens of an old line and the line in its place for a hunk to be split into lines."""

MIN_LIKENESS = 0.6
"""Least share of equal tokens of two insertions, or two deletions, that are examples of one another."""

MAX_TOKENS = 60
"""Tokens of a change; longer ones are not compared."""

TOKEN = re.compile(r"\w+|[^\w\s]")
WORD = re.compile(r"[A-Za-z_]\w*")

Replacements = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
"""Removed and inserted tokens, from left to right."""


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """Lines [start, end) of a file before the commit become lines [new_start, new_end) of the file after it."""

    file: int
    start: int
    end: int
    new_start: int
    new_end: int

    @property
    def growth(self) -> int:
        """Lines by which the file gets longer."""
        return self.new_end - self.new_start - (self.end - self.start)


@dataclass(frozen=True)
class ChangedText:
    """A change with its tokens."""

    change: Change
    old: tuple[str, ...]
    new: tuple[str, ...]
    replaced: Replacements

    @classmethod
    def of(cls, change: Change, before: Sequence[str], after: Sequence[str]) -> "ChangedText":
        """`before` and `after`: the lines of the file."""
        old = tuple(TOKEN.findall("".join(before[change.start : change.end])))
        new = tuple(TOKEN.findall("".join(after[change.new_start : change.new_end])))
        return cls(change, old, new, replacements(old, new))

    @property
    def is_insertion(self) -> bool:
        return not self.old

    @property
    def is_deletion(self) -> bool:
        return not self.new

    @property
    def removed(self) -> tuple[str, ...]:
        return tuple(token for gone, _ in self.replaced for token in gone)

    @property
    def inserted(self) -> tuple[str, ...]:
        return tuple(token for _, come in self.replaced for token in come)

    @property
    def pattern(self) -> Replacements:
        """The replacements with numbers in place of the words that the line keeps: `(a)` -> `(a, a.b)` is one for
        every name. As they are, if little else would be left of them."""
        kept = {word for word in self.old if word in self.new and WORD.fullmatch(word)}
        numbers: dict[str, str] = {}

        def masked(tokens: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(numbers.setdefault(each, f"${len(numbers)}") if each in kept else each for each in tokens)

        found = tuple((masked(gone), masked(come)) for gone, come in self.replaced)
        own = [token for pair in found for tokens in pair for token in tokens if token[0] != "$"]
        return found if len(own) > 1 or any(map(WORD.fullmatch, own)) else self.replaced


def replacements(old: Sequence[str], new: Sequence[str]) -> Replacements:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return tuple((tuple(old[a:b]), tuple(new[c:d])) for kind, a, b, c, d in matcher.get_opcodes() if kind != "equal")


def changes_of(file: int, hunks: Sequence[LineHunk], before: Sequence[str], after: Sequence[str]) -> list[Change]:
    """The changes of one file from top to bottom."""
    return [change for hunk in hunks for change in _split(file, hunk, before, after)]


def _split(file: int, hunk: LineHunk, before: Sequence[str], after: Sequence[str]) -> list[Change]:
    old, new = before[hunk.start : hunk.end], after[hunk.new_start : hunk.new_end]
    lines = range(max(len(old), len(new)))
    if len(old) == len(new) > 1 and all(_ratio(a, b) >= MIN_PAIR_LIKENESS for a, b in zip(old, new, strict=True)):
        return [
            Change(file, hunk.start + n, hunk.start + n + 1, hunk.new_start + n, hunk.new_start + n + 1) for n in lines
        ]
    if not old and len(new) > 2 and _are_alike(new):
        return [Change(file, hunk.start, hunk.start, hunk.new_start + n, hunk.new_start + n + 1) for n in lines]
    if not new and len(old) > 2 and _are_alike(old):
        return [Change(file, hunk.start + n, hunk.start + n + 1, hunk.new_start, hunk.new_start) for n in lines]
    return [Change(file, hunk.start, hunk.end, hunk.new_start, hunk.new_end)]


def _are_alike(lines: Sequence[str]) -> bool:
    return all(_ratio(a, b) >= MIN_LIKENESS for a, b in pairwise(lines))


def _ratio(a: str, b: str) -> float:
    return likeness(TOKEN.findall(a), TOKEN.findall(b))


def likeness(a: Sequence[str], b: Sequence[str]) -> float:
    """Share of tokens that two texts share in order; 0 if one is empty or long."""
    if not a or not b or max(len(a), len(b)) > MAX_TOKENS:
        return 0.0
    return SequenceMatcher(None, a, b, autojunk=False).ratio()


def groups(changed: Sequence[ChangedText]) -> list[list[ChangedText]]:
    """The changes that repeat one another, two or more a group; a change of white space only is in none."""
    found: list[list[ChangedText]] = []
    for each in changed:
        if not each.replaced or len(each.old) + len(each.new) > 2 * MAX_TOKENS:
            continue
        group = next((group for group in found if _repeats(each, group[-1])), None)
        if group is None:
            found.append([each])
        else:
            group.append(each)
    return [group for group in found if len(group) > 1]


def _repeats(one: ChangedText, other: ChangedText) -> bool:
    if one.is_insertion and other.is_insertion:
        return likeness(one.new, other.new) >= MIN_LIKENESS
    if one.is_deletion and other.is_deletion:
        return likeness(one.old, other.old) >= MIN_LIKENESS
    is_replacement = bool(one.old and one.new and other.old and other.new)
    return is_replacement and (one.replaced == other.replaced or one.pattern == other.pattern)


def named_groups(changed: Sequence[ChangedText], known: frozenset[str]) -> list[list[ChangedText]]:
    """The changes that bring in the same new name (four letters or more, not among `known`), three or more a group."""
    users: dict[str, list[ChangedText]] = {}
    for each in changed:
        for word in dict.fromkeys(each.inserted):
            if len(word) > 3 and WORD.fullmatch(word) and word not in known:
                users.setdefault(word, []).append(each)
    found = [tuple(group) for group in users.values() if len(group) > 2]
    return [list(group) for group in dict.fromkeys(found)]
