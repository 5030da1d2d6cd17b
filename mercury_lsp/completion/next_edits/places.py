"""Other places of the next edit: lines with new errors, and the nearest other use of a changed name.

Other servers report the errors, which the client forwards. Messages are not kept. Errors reported before the user's
first edit do not count, nor do reports about an older text.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from mercury_engine.api import REGION_LINES_ABOVE, REGION_LINES_BELOW

from mercury_lsp.completion.next_edits.edits import occurrences, text_around
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.suggestions import Position
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Snapshot

MAX_OCCURRENCES = 20
"""Most occurrences of a name in a document; a more frequent name says nothing about the next place."""

MAX_NAMES = 8
"""Most names searched for, each in 200,000 characters of text."""

MAX_DIAGNOSTICS = 100
"""Most errors of one report that are read."""

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
    def uri(self) -> str:
        """That of its document."""
        return self.snapshot.uri

    @property
    def position(self) -> Position:
        """The first character of its line that isn't blank."""
        start = self.snapshot.offset_at(self.line, 0)
        text, _ = self.snapshot.line_at(start)
        return self.snapshot.position_at(start + len(text) - len(text.lstrip()))

    def covers(self, line: int) -> bool:
        """Whether a line of its document is among its lines."""
        return self.start_line <= line < self.end_line


@dataclass(slots=True)
class _Reported:
    """The errors reported for a document."""

    source: ChunkedText | None = None
    """The text of the last report."""
    lines: frozenset[int] = frozenset()
    """Lines with new errors."""
    old: set[int] = field(default_factory=set)
    """Errors from before any edit, by their line's text and column, which edits of other lines leave unchanged."""
    is_edited: bool = False
    """Whether the user has edited any document since the first report."""


class Diagnostics:
    """The diagnostics of one connection's documents; used on the event loop's thread only."""

    def __init__(self) -> None:
        self._reported: dict[str, _Reported] = {}

    def report(self, snapshot: Snapshot, starts: Iterable[int]) -> None:
        """Replace a document's errors by those at these offsets of this version."""
        document = self._reported.setdefault(snapshot.uri, _Reported())
        errors = {at: _key(at, snapshot) for at in islice(starts, MAX_DIAGNOSTICS)}
        if not document.is_edited:
            document.old.update(errors.values())
        document.source = snapshot.source
        document.lines = frozenset(snapshot.source.line_of(at) for at, key in errors.items() if key not in document.old)

    def edited(self) -> None:
        """The user edited a document: errors that appear from now on, in any document, may follow from that."""
        for each in self._reported.values():
            each.is_edited = True

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._reported.pop(uri, None)

    def errors(self, snapshot: Snapshot) -> frozenset[int]:
        """The lines of this version of a document with new errors; none before its first report."""
        document = self._reported.get(snapshot.uri)
        return document.lines if document is not None and document.source is snapshot.source else frozenset()


def _key(at: int, snapshot: Snapshot) -> int:
    line, start = snapshot.line_at(at)
    return hash((line, at - start))


def broken_places(
    documents: Sequence[tuple[Snapshot, str]],
    hunks: Sequence[Hunk],
    errors_of: Callable[[Snapshot], Collection[int]],
    known: Sequence[Place] = (),
) -> Iterator[Place]:
    """The lines of documents in which an error appeared after the user's change, none in an earlier place's lines.

    The latest hunk's document comes first, its lines below the hunk before those above. Lines of the `known` places are
    left out, and lines that the user changed or that don't parse: their errors come from an unfinished change.
    """
    if not hunks:
        return
    last, covered = hunks[-1], list[Place | Hunk]((*hunks, *known))
    for snapshot, path in sorted(documents, key=lambda each: each[0].uri != last.uri):
        at = last.line if snapshot.uri == last.uri else 0
        errors = sorted(errors_of(snapshot))
        for line in (*(each for each in errors if each >= at), *(each for each in reversed(errors) if each < at)):
            if not _is_in(covered, snapshot, line) and _parses(snapshot, line):
                covered.append(place := Place.around(snapshot, path, line))
                yield place


def _is_in(places: Sequence[Place | Hunk], snapshot: Snapshot, line: int) -> bool:
    """Whether a line of a document is in one of these places or changes."""
    return any(each.uri == snapshot.uri and each.covers(line) for each in places)


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
            if free := [line for line in lines if not _is_in((*known, *hunks), snapshot, line)]:
                line = min(free, key=lambda each: abs(each - last.line)) if snapshot.uri == last.uri else free[0]
                return Place.around(snapshot, path, line)
    return None
