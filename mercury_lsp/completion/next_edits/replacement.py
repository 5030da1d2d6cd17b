"""A renaming: a change in which a whole name became another."""

import re
from dataclasses import dataclass

from mercury_lsp.completion.next_edits.change import Change, differing
from mercury_lsp.documents.document import Snapshot

MAX_NAME_CHARS = 80
"""Longest name, old or new."""

MAX_REPEATED_LINE_CHARS = 2000
"""Longest line, in characters, in which a change is repeated."""

_WORD_END = re.compile(r"\w+\Z")
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Replacement:
    """An old name, the new one, and the offset where the new one already stands."""

    old: str
    new: str
    start: int

    @property
    def end(self) -> int:
        """Where the new name ends."""
        return self.start + len(self.new)

    def is_same(self, other: "Replacement") -> bool:
        """Whether both are of the same names, wherever they stand."""
        return (self.old, self.new) == (other.old, other.new)

    def is_all_of(self, before: str, after: str) -> bool:
        """Whether lines became others by this replacement alone."""
        return before != after and re.sub(rf"\b{re.escape(self.old)}\b", self.new, before) == after

    def undoes(self, other: "Replacement") -> bool:
        """Whether this replacement reverts the other one."""
        return (self.old, self.new) == (other.new, other.old)


def word_around(start: int, end: int, snapshot: Snapshot) -> str:
    """A text with the letters before and after it."""
    line_start, line_end = snapshot.source.line_bounds(start)
    left = _WORD_END.search(snapshot.slice(line_start, start))
    right = _WORD.match(snapshot.slice(end, max(end, line_end)))
    return (left[0] if left else "") + snapshot.slice(start, end) + (right[0] if right else "")


def replacement_of(change: Change, snapshot: Snapshot) -> Replacement | None:
    """The change extended to whole words; None if these aren't a name before and another one after it."""
    change = differing(change)
    line_start, line_end = snapshot.source.line_bounds(change.start)
    if line_end - line_start > MAX_REPEATED_LINE_CHARS:
        return None
    before, after = snapshot.slice(line_start, change.start), snapshot.slice(change.end, line_end)
    left, right = _WORD_END.search(before), _WORD.match(after)
    head, tail = left[0] if left else "", right[0] if right else ""
    old, new = head + change.old + tail, head + change.new + tail
    is_name = all(_NAME.fullmatch(text) and len(text) <= MAX_NAME_CHARS for text in (old, new))
    return Replacement(old, new, change.start - len(head)) if is_name and old != new else None
