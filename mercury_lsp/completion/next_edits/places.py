"""Other places of the next edit: lines with new errors, and the nearest other use of a changed name."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from mercury_engine.api import REGION_LINES_ABOVE, REGION_LINES_BELOW

from mercury_lsp.completion.next_edits.edits import occurrences, text_around
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.suggestions import Position
from mercury_lsp.documents.document import Snapshot

MAX_OCCURRENCES = 20
"""Most occurrences of a name in a document; a more frequent name says nothing about the next place."""

MAX_NAMES = 8
"""Most names searched for, each in 200,000 characters of text."""

_NAME = re.compile(r"[^\W\d]\w{2,}")
_CALLED = re.compile(r"([^\W\d]\w{2,})\(")


@dataclass(frozen=True, slots=True)
class Place:
    """Lines [start_line, end_line) of one version of a document."""

    snapshot: Snapshot
    path: str
    line: int
    """The line in the middle."""
    start_line: int
    end_line: int
    cursor: int | None = None
    """The offset of the cursor, if it is here."""

    @classmethod
    def around(cls, snapshot: Snapshot, path: str, line: int) -> "Place":
        """A line of a document and the lines that are rewritten with it."""
        count = snapshot.source.line_of(snapshot.length) + 1
        return cls(snapshot, path, line, max(0, line - REGION_LINES_ABOVE), min(count, line + REGION_LINES_BELOW + 1))

    @property
    def position(self) -> Position:
        """The first character of its line that isn't blank."""
        start = self.snapshot.offset_at(self.line, 0)
        text, _ = self.snapshot.line_at(start)
        return self.snapshot.position_at(start + len(text) - len(text.lstrip()))

    def covers(self, line: int) -> bool:
        """Whether a line of its document is among its lines."""
        return self.start_line <= line < self.end_line


def broken_places(
    documents: Sequence[tuple[Snapshot, str]], hunks: Sequence[Hunk], errors_of: Callable[[Snapshot], Collection[int]]
) -> Iterator[Place]:
    """The lines of documents in which an error appeared after the user's change.

    The latest hunk's document comes first, its lines below the hunk before those above. Lines that the user changed
    or that don't parse are left out: their errors come from an unfinished change.
    """
    if not hunks:
        return
    last = hunks[-1]
    for snapshot, path in sorted(documents, key=lambda each: each[0].uri != last.uri):
        own = [each for each in hunks if each.uri == snapshot.uri]
        at = last.line if snapshot.uri == last.uri else 0
        errors = sorted(errors_of(snapshot))
        for line in (*(each for each in errors if each >= at), *(each for each in reversed(errors) if each < at)):
            if not any(each.covers(line) for each in own) and _parses(snapshot, line):
                yield Place.around(snapshot, path, line)


def _parses(snapshot: Snapshot, line: int) -> bool:
    """Whether a line of a version parses."""
    if snapshot.tree is None or not snapshot.is_parsed:
        return False
    start, end = (snapshot.source.byte_of(snapshot.offset_at(each, 0)) for each in (line, line + 1))
    node = snapshot.tree.root_node.named_descendant_for_byte_range(start, max(start, end - 1))
    return node is None or not node.has_error


def named_place(
    documents: Sequence[tuple[Snapshot, str]], hunks: Sequence[Hunk], known: Sequence[Place] = ()
) -> Place | None:
    """Another line with a name that the last change removed, or whose call or header it changed.

    This is the nearest such line in the changed document, or else the first one in another. Lines of the `known` places
    and of the hunks are left out.
    """
    if not hunks:
        return None
    last = hunks[-1]
    before, after = (_NAME.findall(text) for text in (last.before, last.after))
    called = [name for name in _CALLED.findall(last.after) if name in before]
    names = dict.fromkeys([*(each for each in before if each not in after), *called])
    if not names:
        return None
    searched = [(snapshot, path, *text_around(last.offset_in(snapshot), snapshot)) for snapshot, path in documents]
    for name in islice(names, MAX_NAMES):
        for snapshot, path, start, text in searched:
            found = [start + at for at in occurrences(name, text)]
            lines = [snapshot.source.line_of(at) for at in found] if len(found) <= MAX_OCCURRENCES else []
            near: list[Place | Hunk] = [
                *(each for each in known if each.snapshot.uri == snapshot.uri),
                *(each for each in hunks if each.uri == snapshot.uri),
            ]
            if free := [line for line in lines if not any(each.covers(line) for each in near)]:
                line = min(free, key=lambda each: abs(each - last.line)) if snapshot.uri == last.uri else free[0]
                return Place.around(snapshot, path, line)
    return None
