"""Tracks which part of an open document is indexed while the document changes."""

from collections.abc import Sequence

from mercury_lsp.completion.drafting.changed_range import INDEX_SLICE_CHARS, ChangedRange, OffsetRange
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Edit


class TrackedDocument:
    """One document; all its lines are indexed except those of `unindexed`."""

    def __init__(self, number: int):
        self.number = number
        self.source = ChunkedText(())
        self.unindexed: OffsetRange = (0, 0)
        """Whole lines still to be indexed; (0, 0) if there are none."""
        self.edited_at = 0
        """Greater in documents edited later; 0 before the first edit."""
        self._span: ChangedRange | None = None
        """The range of the edits since the last version."""
        self._are_edits_known = False

    def edited(self, edits: Sequence[Edit] | None, at: int) -> None:
        """Record the edits that lead to the next version, in order; None when they are not known."""
        self.edited_at = at
        self._are_edits_known = self._are_edits_known and edits is not None
        for edit in edits or ():
            self._span = (self._span or ChangedRange(edit.start, edit.start, edit.start)).then(edit)

    def advance(self, source: ChunkedText) -> tuple[list[OffsetRange], OffsetRange]:
        """Switch to the next version; returns the ranges of the old one to remove and the range of the new one to add.

        Edited lines become the unindexed range, so that a line is not indexed again at every key typed in it; they are
        indexed in a pause (`mark_indexed`) or when the next edit is elsewhere. A long unindexed range waits for a
        pause, and absorbs edits that touch it or are long themselves, with the lines between.
        """
        span = self._changed(source)
        old, self.source = self.source, source
        self._span, self._are_edits_known = None, True
        if span is None:
            return [], (0, 0)
        span = span.whole_lines(old, source)
        shift = span.new_end - span.old_end
        low, high = self.unindexed
        overlaps = low < span.old_end and span.start < high
        if low < high and not overlaps:
            moved = (low + shift, high + shift) if low >= span.old_end else (low, high)
            if high - low <= INDEX_SLICE_CHARS:
                self._set_unindexed(span.start, span.new_end)
                return [(span.start, span.old_end)], moved
            if span.old_end + span.new_end - 2 * span.start <= INDEX_SLICE_CHARS:
                self.unindexed = moved
                return [(span.start, span.old_end)], (span.start, span.new_end)
        if low == high:
            low = high = span.start
        start, end = min(low, span.start), max(high, span.old_end)
        self._set_unindexed(start, end + shift)
        return [(start, low), (high, end)], (0, 0)

    def mark_indexed(self, stop: int) -> None:
        """The unindexed range has been indexed up to offset `stop`."""
        self._set_unindexed(stop, self.unindexed[1])

    def indexed(self) -> list[OffsetRange]:
        """The ranges that the index holds."""
        return [(0, self.unindexed[0]), (self.unindexed[1], self.source.length)]

    def _set_unindexed(self, start: int, end: int) -> None:
        self.unindexed = (start, end) if start < end else (0, 0)

    def _changed(self, source: ChunkedText) -> ChangedRange | None:
        """The range that differs in the next version, if any; from the edits if they are known and fit."""
        if source is self.source:
            return None
        if self._are_edits_known and self._span is not None and self._span.fits(self.source, source):
            return self._span
        return ChangedRange.between(self.source, source)
