"""Finds a line of the open documents that continues the line under the cursor; kept up to date edit by edit.

The server reports versions (`update`) and edits (`edited`), and runs `work` in pauses.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from mercury_lsp.completion.drafting.changed_range import (
    INDEX_SLICE_CHARS,
    OffsetRange,
    line_above,
    line_below,
    lines_of,
    next_slice,
)
from mercury_lsp.completion.drafting.choice import Candidate, CursorLines, Rank, best_continuation
from mercury_lsp.completion.drafting.lines import LineIndex
from mercury_lsp.completion.drafting.matching import Prefix
from mercury_lsp.completion.drafting.tracking import TrackedDocument
from mercury_lsp.context.context import CompletionContext
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Edit, Snapshot

INDEX_BUDGET_BYTES = 32_000_000
"""Memory for the lines of all open documents."""


class DraftIndex:
    """The lines of all open documents, within `budget` bytes; to be used from one thread."""

    def __init__(self, budget: int = INDEX_BUDGET_BYTES):
        self.lines_read = 0
        """Lines indexed since the start."""
        self._lines = LineIndex(budget)
        self._documents: dict[str, TrackedDocument] = {}
        self._removals: deque[tuple[int, ChunkedText, OffsetRange]] = deque()
        """Ranges to remove: document number, text, range."""
        self._last_number = 0
        self._edit_count = 0

    @property
    def bytes(self) -> int:
        """Estimated memory use for lines; the texts of open documents are shared with their owner."""
        return self._lines.bytes

    @property
    def pending(self) -> bool:
        """Whether there is `work` to do."""
        return bool(self._removals) or any(each.unindexed[0] < each.unindexed[1] for each in self._documents.values())

    def edited(self, uri: str, edits: Sequence[Edit] | None) -> None:
        """Record edits in order, all of them between two updates; None when the whole document was replaced."""
        if (document := self._documents.get(uri)) is not None:
            self._edit_count += 1
            document.edited(edits, self._edit_count)

    def update(self, snapshot: Snapshot) -> None:
        """Switch to a version of a document; large changes and new documents are left to `work`."""
        document = self._documents.get(snapshot.uri)
        if document is None:
            self._last_number += 1
            document = self._documents[snapshot.uri] = TrackedDocument(self._last_number)
        old = document.source
        removed, added = document.advance(snapshot.source)
        self._discard(document.number, old, removed)
        if added[0] < added[1]:
            self._add_lines(document, *added, document.source.slice(*added))

    def forget(self, uri: str) -> None:
        """The document was closed: its lines are no longer drafts."""
        if (document := self._documents.pop(uri, None)) is not None:
            self._discard(document.number, document.source, document.indexed())

    def work(self) -> bool:
        """Do a small part of the pending work; returns whether more is left."""
        if self._removals:
            number, source, (start, end) = self._removals.popleft()
            text, stop = next_slice(source, start, end)
            self._remove_lines(number, text)
            if stop < end:
                self._removals.appendleft((number, source, (stop, end)))
        elif (document := self._unfinished()) is not None:
            start, end = document.unindexed
            text, stop = next_slice(document.source, start, end)
            document.mark_indexed(stop)
            self._add_lines(document, start, stop, text)
        return self.pending

    def draft(self, context: CompletionContext) -> str:
        """How the line under the cursor may continue, judged by similar lines; empty if there is none.

        On a blank line, the draft is the line that stood below a line like the one above. The longest match wins; among
        equals a line near the cursor, then one of the same document, then of the document edited last.
        """
        around = CursorLines.of(context)
        if context.line_prefix.strip():
            prefix = Prefix.of(context.line_prefix)
            return best_continuation(context, prefix, chain(around.candidates(), self._matching(context.uri, prefix)))
        if context.line_suffix.strip() or not around.above:
            return ""
        return self._below(context, around) or around.line_like_below(context.line_prefix)

    def _matching(self, uri: str, prefix: Prefix) -> Iterator[Candidate]:
        """Indexed lines that may match the prefix."""
        ranks = self._ranks(uri)
        for line in chain.from_iterable(map(self._lines.under, prefix.keys())):
            if line.document in ranks:
                yield Candidate(line.text, (0, *ranks[line.document], line.stamp))

    def _below(self, context: CompletionContext, around: CursorLines) -> str:
        """The best line that stood below a line equal to the one above the cursor."""
        found: list[tuple[Rank, str]] = []
        for number, rank in self._ranks(context.uri).items():
            line = self._lines.find(number, around.above[0])
            for below in line.below if line is not None else ():
                indexed = self._lines.find(number, below.text)
                rest = below.completes(context.line_prefix, around.above[0])
                if indexed is not None and rest and not around.comes_next(below.text):
                    found.append(((0, *rank, indexed.stamp), rest))
        return max(found)[1] if found else ""

    def _ranks(self, uri: str) -> dict[int, tuple[int, int]]:
        """The open documents by number, with the rank of their lines."""
        return {each.number: (int(each_uri == uri), each.edited_at) for each_uri, each in self._documents.items()}

    def _unfinished(self) -> TrackedDocument | None:
        """The document edited last of those not fully indexed."""
        unfinished = [each for each in self._documents.values() if each.unindexed[0] < each.unindexed[1]]
        return max(unfinished, key=lambda each: (each.edited_at, each.number), default=None)

    def _add_lines(self, document: TrackedDocument, start: int, end: int, text: str) -> None:
        lines = lines_of(text)
        for line in lines:
            self._lines.add(document.number, line)
        self.lines_read += len(lines)
        run = [line_above(document.source, start), *lines, line_below(document.source, end)]
        for above, below in pairwise(run):
            self._lines.link(document.number, above, below)

    def _discard(self, number: int, source: ChunkedText, ranges: list[OffsetRange]) -> None:
        for start, end in ranges:
            if end - start > INDEX_SLICE_CHARS:
                self._removals.append((number, source, (start, end)))
            elif start < end:
                self._remove_lines(number, source.slice(start, end))

    def _remove_lines(self, number: int, text: str) -> None:
        for line in lines_of(text):
            self._lines.remove(number, line)
