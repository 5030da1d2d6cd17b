"""A change that replaced a whole name by another."""

import re
from typing import NamedTuple

from mercury_lsp.completion.next_edits.change import Change, differing
from mercury_lsp.documents.document import Snapshot

MAX_NAME_CHARS = 80
"""Longest name, old or new, in characters."""

MAX_REPEATED_LINE_CHARS = 2000
"""Longest line, in characters, in which a change is repeated."""

_NO_LETTER = re.compile(r"\W")
_NAME = re.compile(r"[^\W\d]\w*")
_GOES_ON = re.compile(r"\.|\?\.|::|->|[(\[!]")
"""Extends a typed name to a longer expression (`self`, then `.path`)."""


class Replacement(NamedTuple):
    """An old name, the new one, and the offset at which the new one already stands."""

    old: str
    new: str
    start: int

    @property
    def end(self) -> int:
        """Where the new name ends."""
        return self.start + len(self.new)

    @property
    def is_of_names(self) -> bool:
        """Whether both are names, and different ones."""
        names = all(_NAME.fullmatch(text) and len(text) <= MAX_NAME_CHARS for text in (self.old, self.new))
        return names and self.old != self.new


def replacement_of(change: Change, snapshot: Snapshot) -> Replacement | None:
    """The change extended to whole words, without text typed after the new name; None if these aren't two names."""
    line_start, line_end = snapshot.source.line_bounds(change.start)
    if line_end - line_start > MAX_REPEATED_LINE_CHARS:
        return None
    differs = differing(change)
    head, tail = _around(differs, snapshot)
    found = Replacement(head + differs.old + tail, head + differs.new + tail, differs.start - len(head))
    if found.is_of_names:
        return found
    head, tail = _around(change, snapshot)
    word = _first_word(change.new)
    if tail or not (head or change.old) or _GOES_ON.match(change.new, len(word)):
        return None
    found = Replacement(head + change.old, head + word, change.start - len(head))
    return found if found.is_of_names else None


def _around(change: Change, snapshot: Snapshot) -> tuple[str, str]:
    """The letters before and after a change."""
    first, last = snapshot.source.line_bounds(change.start)[0], snapshot.source.line_bounds(change.end)[1]
    before, after = snapshot.slice(first, change.start), snapshot.slice(change.end, last)
    return _first_word(before[::-1])[::-1], _first_word(after)


def _first_word(text: str) -> str:
    """The letters, digits and underscores with which a text begins."""
    return _NO_LETTER.split(text, 1)[0]
