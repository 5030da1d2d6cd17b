"""Finds a line of the open documents that goes on like the line under the cursor; kept up to date edit by edit.

Whoever serves the documents tells of their versions (`update`) and edits (`edited`), and runs `work` in pauses.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from mercury_lsp.completion.drafting.changes import (
    INDEX_SLICE_CHARS,
    Range,
    line_above,
    line_below,
    lines_of,
    next_slice,
)
from mercury_lsp.completion.drafting.choice import Candidate, CursorLines, Rank, best_rest
from mercury_lsp.completion.drafting.lines import LineIndex
from mercury_lsp.completion.drafting.matching import Prefix
from mercury_lsp.completion.drafting.tracking import TrackedDocument
from mercury_lsp.context.context import CompletionContext
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Edit, Snapshot

INDEX_BUDGET_BYTES = 32_000_000


class DraftIndex:
    """The lines of all open documents, within `budget` bytes; to be used from one thread."""

    def __init__(self, budget: int = INDEX_BUDGET_BYTES):
        self.lines_read = 0
        """Lines put in since the start."""
        self._lines = LineIndex(budget)
        self._documents: dict[str, TrackedDocument] = {}
        self._gone: deque[tuple[int, ChunkedText, Range]] = deque()
        """Ranges to be taken out: document number, text, range."""
        self._numbers = 0
        self._edits = 0

    @property
    def bytes(self) -> int:
        """Memory in use for lines, by estimate; the texts of open documents are shared with their owner."""
        return self._lines.bytes

    @property
    def pending(self) -> bool:
        """Whether there is `work` to do."""
        return bool(self._gone) or any(each.gap[0] < each.gap[1] for each in self._documents.values())

    def edited(self, uri: str, edits: Sequence[Edit] | None) -> None:
        """Tell of edits in order, all of them between two updates; None when the whole document was replaced."""
        if (document := self._documents.get(uri)) is not None:
            self._edits += 1
            document.edited(edits, self._edits)

    def update(self, snapshot: Snapshot) -> None:
        """Go over to a version of a document; what changed much, or is new, is left to `work`."""
        document = self._documents.get(snapshot.uri)
        if document is None:
            self._numbers += 1
            document = self._documents[snapshot.uri] = TrackedDocument(self._numbers)
        old = document.source
        removed, added = document.advance(snapshot.source)
        self._discard(document.number, old, removed)
        if added[0] < added[1]:
            self._take_in(document, *added, document.source.slice(*added))

    def forget(self, uri: str) -> None:
        """The document is closed: none of its lines is a draft from now on."""
        if (document := self._documents.pop(uri, None)) is not None:
            self._discard(document.number, document.source, document.indexed())

    def work(self) -> bool:
        """Do a small piece of what is pending; whether more is left."""
        if self._gone:
            number, source, (start, end) = self._gone.popleft()
            text, stop = next_slice(source, start, end)
            self._take_out(number, text)
            if stop < end:
                self._gone.appendleft((number, source, (stop, end)))
        elif (document := self._unfinished()) is not None:
            start, end = document.gap
            text, stop = next_slice(document.source, start, end)
            document.fill(stop)
            self._take_in(document, start, stop, text)
        return self.pending

    def draft(self, context: CompletionContext) -> str:
        """How the line under the cursor may go on, judged by lines like it; empty when none is like it.

        On a blank line it is what stood below a line like the one above. The longest match wins; among equals a
        line near the cursor, then one of the same document, then of the document edited last.
        """
        around = CursorLines.of(context)
        if context.line_prefix.strip():
            prefix = Prefix.of(context.line_prefix)
            return best_rest(context, prefix, chain(around.candidates(), self._like(context.uri, prefix)))
        if context.line_suffix.strip() or not around.above:
            return ""
        return self._below(context, around) or around.line_like_below(context.line_prefix)

    def _like(self, uri: str, prefix: Prefix) -> Iterator[Candidate]:
        """Indexed lines that may match."""
        ranks = self._ranks(uri)
        for line in chain.from_iterable(map(self._lines.under, prefix.keys())):
            if line.document in ranks:
                yield Candidate(line.text, (0, *ranks[line.document], line.stamp))

    def _below(self, context: CompletionContext, around: CursorLines) -> str:
        """A line that stood below a line that equals the one above the cursor."""
        found: list[tuple[Rank, str]] = []
        for number, rank in self._ranks(context.uri).items():
            line = self._lines.find(number, around.above[0])
            for follower in line.followers if line is not None else ():
                itself = self._lines.find(number, follower.text)
                rest = follower.completes(context.line_prefix, around.above[0])
                if itself is not None and rest and not around.comes_next(follower.text):
                    found.append(((0, *rank, itself.stamp), rest))
        return max(found)[1] if found else ""

    def _ranks(self, uri: str) -> dict[int, tuple[int, int]]:
        """The open documents by number, and how their lines rank."""
        return {each.number: (int(each_uri == uri), each.edited_at) for each_uri, each in self._documents.items()}

    def _unfinished(self) -> TrackedDocument | None:
        """The document edited last of those with a gap."""
        gaps = [each for each in self._documents.values() if each.gap[0] < each.gap[1]]
        return max(gaps, key=lambda each: (each.edited_at, each.number), default=None)

    def _take_in(self, document: TrackedDocument, start: int, end: int, text: str) -> None:
        lines = lines_of(text)
        for line in lines:
            self._lines.add(document.number, line)
        self.lines_read += len(lines)
        run = [line_above(document.source, start), *lines, line_below(document.source, end)]
        for above, below in pairwise(run):
            self._lines.link(document.number, above, below)

    def _discard(self, number: int, source: ChunkedText, ranges: list[Range]) -> None:
        for start, end in ranges:
            if end - start > INDEX_SLICE_CHARS:
                self._gone.append((number, source, (start, end)))
            elif start < end:
                self._take_out(number, source.slice(start, end))

    def _take_out(self, number: int, text: str) -> None:
        for line in lines_of(text):
            self._lines.remove(number, line)
