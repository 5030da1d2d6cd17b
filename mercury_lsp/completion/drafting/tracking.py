"""Which part of an open document the index holds, while the document changes."""

from collections.abc import Sequence

from mercury_lsp.completion.drafting.changes import INDEX_SLICE_CHARS, ChangedRange, Range
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Edit


class TrackedDocument:
    """One document; all its lines but those of `gap` are indexed."""

    def __init__(self, number: int):
        self.number = number
        self.source = ChunkedText(())
        self.gap: Range = (0, 0)
        """Whole lines that are still to be indexed; (0, 0) when there are none."""
        self.edited_at = 0
        """Greater in documents edited later; 0 before the first edit."""
        self._span: ChangedRange | None = None
        """Of the edits since the last version."""
        self._is_span_known = False

    def edited(self, edits: Sequence[Edit] | None, at: int) -> None:
        """Edits that lead to the next version, in order; None when they are not known."""
        self.edited_at = at
        self._is_span_known = self._is_span_known and edits is not None
        for edit in edits or ():
            self._span = (self._span or ChangedRange(edit.start, edit.start, edit.start)).then(edit)

    def advance(self, source: ChunkedText) -> tuple[list[Range], Range]:
        """Go over to the next version; the ranges of the old one to be taken out, that of the new one to be put in.

        The lines that an edit touches become the gap, so that a line is not put in anew at every key that is typed
        in it: `fill` does that in a pause, or the next edit elsewhere does. A long gap waits for `fill`, and takes in
        whatever touches it or is long itself, and what is between.
        """
        span = self._changed(source)
        old, self.source = self.source, source
        self._span, self._is_span_known = None, True
        if span is None:
            return [], (0, 0)
        span = span.whole_lines(old, source)
        shift = span.new_end - span.old_end
        low, high = self.gap
        overlaps = low < span.old_end and span.start < high
        if low < high and not overlaps:
            moved = (low + shift, high + shift) if low >= span.old_end else (low, high)
            if high - low <= INDEX_SLICE_CHARS:
                self._open_gap(span.start, span.new_end)
                return [(span.start, span.old_end)], moved
            if span.old_end + span.new_end - 2 * span.start <= INDEX_SLICE_CHARS:
                self.gap = moved
                return [(span.start, span.old_end)], (span.start, span.new_end)
        if low == high:
            low = high = span.start
        start, end = min(low, span.start), max(high, span.old_end)
        self._open_gap(start, end + shift)
        return [(start, low), (high, end)], (0, 0)

    def fill(self, stop: int) -> None:
        """The gap is indexed up to stop."""
        self._open_gap(stop, self.gap[1])

    def indexed(self) -> list[Range]:
        """What the index holds."""
        return [(0, self.gap[0]), (self.gap[1], self.source.length)]

    def _open_gap(self, start: int, end: int) -> None:
        self.gap = (start, end) if start < end else (0, 0)

    def _changed(self, source: ChunkedText) -> ChangedRange | None:
        """What differs in the next version; None for nothing. Compares when the edits are not known or do not fit."""
        if source is self.source:
            return None
        if self._is_span_known and self._span is not None and self._span.fits(self.source, source):
            return self._span
        return ChangedRange.between(self.source, source)
