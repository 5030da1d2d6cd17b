"""A renaming: a change in which a whole name became another."""

import re
from dataclasses import dataclass

from mercury_lsp.completion.next_edits.change import Change, differing
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import language

MAX_NAME_CHARS = 80
"""Longest name, old or new."""

MAX_REPEATED_LINE_CHARS = 2000
"""Longest line, in characters, in which a change is repeated."""

_BLANKS = " \t"
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

    def undoes(self, other: "Replacement") -> bool:
        """Whether this replacement reverts the other one."""
        return (self.old, self.new) == (other.new, other.old)


def replacement_of(change: Change, snapshot: Snapshot) -> Replacement | None:
    """The change extended to whole words; None if these aren't a name before and another one after it."""
    change = differing(change)
    if _is_outdented(change, snapshot):
        return None
    change = _without_outer_blanks(change)
    line_start, line_end = snapshot.source.line_bounds(change.start)
    if line_end - line_start > MAX_REPEATED_LINE_CHARS:
        return None
    before, after = snapshot.slice(line_start, change.start), snapshot.slice(change.end, line_end)
    left, right = _WORD_END.search(before), _WORD.match(after)
    head, tail = left[0] if left else "", right[0] if right else ""
    old, new = head + change.old + tail, head + change.new + tail
    is_name = all(_NAME.fullmatch(text) and len(text) <= MAX_NAME_CHARS for text in (old, new))
    return Replacement(old, new, change.start - len(head)) if is_name and old != new else None


def _without_outer_blanks(change: Change) -> Change:
    """A replaced text without the blanks around it: the indentation that went with it is not repeated elsewhere."""
    old, new = change.old.strip(_BLANKS), change.new.strip(_BLANKS)
    if not (old and new):
        return change
    return Change(change.start + _indent(change.new), old, new)


def _is_outdented(change: Change, snapshot: Snapshot) -> bool:
    """Whether a line lost its indentation where that delimits blocks: its names seem to be in another scope then."""
    if not language(snapshot.language_id).by_indent or _indent(change.old) <= _indent(change.new):
        return False
    line, line_start = snapshot.line_at(change.start)
    return not line[: change.start - line_start].strip()


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip(_BLANKS))
