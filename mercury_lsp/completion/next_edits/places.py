"""Where the next edit is, for users who ask: lines in which an error appeared, and those that a learned head ranks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import mercury_engine
from mercury_engine.places.candidates import TOLERANCE_LINES
from mercury_engine.places.head import PlaceHead
from mercury_engine.places.situation import LineChange, Situation
from mercury_engine.places.whole_document import WholeDocument
from mercury_engine.text.lines import lines_of

from mercury_lsp.completion.next_edits.checks import parses
from mercury_lsp.completion.next_edits.diagnostics import Evidence
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.suggestions import Position
from mercury_lsp.documents.document import Snapshot, is_too_long

HEAD_FILE = Path(mercury_engine.__file__).parent / "assets" / "places.safetensors"

MIN_PROBABILITY = 0.1
"""Least probability of a place: a model's own "no change" is the veto, and a user who is taken there sees it."""

MAX_DOCUMENTS = 8
"""Documents that are looked through: the one at hand, and those changed last."""

PLACES_FOUND = 3

HUNKS_SEEN = 8
"""Latest hunks that the head is shown; it learned from commits of at most eight."""


@dataclass(frozen=True, slots=True)
class Place:
    """Lines [start_line, end_line) of one version of a document, and the probability that the next edit is there."""

    snapshot: Snapshot
    path: str
    line: int
    """The line that was ranked, in the middle."""
    start_line: int
    end_line: int
    probability: float
    cursor: int | None = None
    """The offset of the cursor, if it is here."""

    @classmethod
    def around(
        cls,
        snapshot: Snapshot,
        path: str,
        line: int,
        probability: float,
        above: int = TOLERANCE_LINES,
        below: int = TOLERANCE_LINES,
    ) -> "Place":
        """A line of a document with so many above and below it."""
        count = snapshot.source.line_of(snapshot.length) + 1
        return cls(snapshot, path, line, max(0, line - above), min(count, line + below + 1), probability)

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
    documents: Sequence[tuple[Snapshot, str]], hunks: Sequence[Hunk], evidence: Callable[[Snapshot], Evidence]
) -> Iterator[Place]:
    """The lines of documents, with their paths, in which an error appeared after the user's change.

    The latest hunk's document comes first, its lines below the hunk before those above. Lines that the user changed or
    that don't parse are left out: an error in them is that of an unfinished change. So are errors of older texts.
    """
    if not hunks:
        return
    last = hunks[-1]
    for snapshot, path in sorted(documents, key=lambda each: each[0].uri != last.uri):
        own = [each for each in hunks if each.uri == snapshot.uri]
        at = last.line if snapshot.uri == last.uri else 0
        found = evidence(snapshot)
        errors = sorted(found.errors) if found.is_current else []
        for line in (*(each for each in errors if each >= at), *(each for each in reversed(errors) if each < at)):
            if not any(each.covers(line) for each in own) and parses(snapshot, line, line + 1):
                yield Place.around(snapshot, path, line, 1.0)


def ranked_places(documents: Sequence[tuple[Snapshot, str]], hunks: Sequence[Hunk]) -> list[Place]:
    """The likeliest places of documents, with their paths, best first; none without hunks, oldest first.

    The first document is the one at hand. It takes a second for 20,000 lines; for any thread.
    """
    newest = [each.uri for each in reversed(hunks)]
    at_hand, *others = documents
    others = sorted(others, key=lambda each: (*newest, each[0].uri).index(each[0].uri))
    read = [each for each in (at_hand, *others) if not is_too_long(each[0].source)][:MAX_DOCUMENTS]
    if at_hand not in read:
        return []
    numbers = {snapshot.uri: number for number, (snapshot, _) in enumerate(read)}
    changes = [
        LineChange(numbers[each.uri], each.line, each.before_lines, each.after_lines)
        for each in hunks[-HUNKS_SEEN:]
        if each.uri in numbers
    ]
    texts = tuple(WholeDocument(path, tuple(lines_of(each.text))) for each, path in read)
    own = [each for each in changes if each.document == 0]
    cursor = max(own[-1].start, own[-1].end - 1) if own else 0
    found = bundled_head().places(Situation(texts, tuple(changes), (0, cursor)), PLACES_FOUND)
    return [
        Place.around(*read[each.candidate.document], each.candidate.line, each.probability)
        for each in found
        if each.probability >= MIN_PROBABILITY
    ]


@cache
def bundled_head() -> PlaceHead:
    """The head that comes with the package."""
    return PlaceHead.load(HEAD_FILE)
