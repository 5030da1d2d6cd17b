"""Where the next edit is: the learned head ranks lines of the open documents, given the user's history.

The index of a document is kept up to date as questions come, and built in pauses (`work`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import mercury_engine
from mercury_engine.lru import LeastRecentlyUsed
from mercury_engine.places.candidates import TOLERANCE_LINES
from mercury_engine.places.head import LikelyPlace, PlaceHead
from mercury_engine.places.situation import LineChange, Situation

from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.next_edits.indexed_document import IndexedDocument
from mercury_lsp.context.open_documents import OpenDocuments
from mercury_lsp.documents.document import MAX_PARSED_BYTES, Snapshot

HEAD_FILE = Path(mercury_engine.__file__).parent / "assets" / "places.safetensors"

MAX_DOCUMENTS = 8
"""Open documents that are looked through: those changed last, and the one at hand."""

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

    def covers(self, line: int) -> bool:
        """Whether a line of its document is among its lines."""
        return self.start_line <= line < self.end_line


class Places:
    """The places of one connection; to be used from the event loop's thread."""

    def __init__(self, documents: OpenDocuments, head: Callable[[], PlaceHead] | None = None):
        self.documents, self._head = documents, head or bundled_head
        self._indexed: LeastRecentlyUsed[str, IndexedDocument] = LeastRecentlyUsed(MAX_DOCUMENTS)

    def rank(self, uri: str, line: int, hunks: Sequence[Hunk], may_use: Callable[[str], bool]) -> list[Place]:
        """The likeliest places for a cursor in a line of the document `uri`, best first; none without hunks.

        `hunks` oldest first; `may_use` allows other documents by uri. A document whose index isn't up to date takes no
        part; if it is the one at hand, nothing is ranked.
        """
        uris = self._looked_through(uri, hunks, may_use)
        ready = {each: indexed for each in uris if (indexed := self._up_to_date(each)) is not None}
        if uri not in ready or not hunks:
            return []
        numbers = {each: number for number, each in enumerate(ready)}
        changes = tuple(_change(numbers[hunk.uri], hunk) for hunk in hunks[-HUNKS_SEEN:] if hunk.uri in numbers)
        shown, documents = tuple(ready), tuple(ready.values())
        found = self._head().places(Situation(documents, changes, (numbers[uri], line)), PLACES_FOUND)
        return [self._place(shown[each.candidate.document], each) for each in found]

    def _place(self, uri: str, found: LikelyPlace) -> Place:
        snapshot, path = self.documents.snapshot(uri), self.documents.path(uri)
        return Place.around(snapshot, path, found.candidate.line, found.probability)

    def prepare(self, uri: str) -> None:
        """Index a document from the next pause on."""
        if self._indexed.get(uri) is None:
            self._indexed.put(uri, IndexedDocument(self.documents.path(uri)))

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._indexed.pop(uri)

    def work(self) -> bool:
        """Index a little; returns whether more is left."""
        return any(self._updated(uri) is None for uri in self._known() if self._is_indexable(uri))

    def _looked_through(self, uri: str, hunks: Sequence[Hunk], may_use: Callable[[str], bool]) -> list[str]:
        """The document at hand, those changed last, and other open ones."""
        others = [*(hunk.uri for hunk in reversed(hunks)), *reversed(self.documents.uris)]
        allowed = [each for each in dict.fromkeys(others) if each != uri and each in self.documents and may_use(each)]
        return [uri, *allowed][:MAX_DOCUMENTS]

    def _up_to_date(self, uri: str) -> IndexedDocument | None:
        self.prepare(uri)
        return self._updated(uri) if self._is_indexable(uri) else None

    def _updated(self, uri: str) -> IndexedDocument | None:
        """The document's index, if a slice of time is enough to bring it up to date."""
        indexed = self._indexed.get(uri)
        if indexed is None:
            return None
        return indexed if indexed.update(self.documents.snapshot(uri)) else None

    def _is_indexable(self, uri: str) -> bool:
        source = self.documents.snapshot(uri).source
        return source.byte_length <= MAX_PARSED_BYTES and not source.has_long_line

    def _known(self) -> list[str]:
        return [uri for uri in self.documents.uris if self._indexed.get(uri) is not None]


def _change(number: int, hunk: Hunk) -> LineChange:
    return LineChange(number, hunk.line, hunk.before_lines, hunk.after_lines)


@cache
def bundled_head() -> PlaceHead:
    """The head that comes with the package."""
    return PlaceHead.load(HEAD_FILE)
