"""Text for n-gram lookup outside the window: the rest of the document, and other open documents.

It contains only chunks without secrets; they are checked in pauses (`work`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from time import perf_counter

from mercury_lsp.context.context import CompletionContext
from mercury_lsp.documents.chunked_text import with_line_feeds
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.redaction import chunk_without_secrets, holds_partial_line, with_neighbours

BOUNDARY = ""
"""Separates chunks that are not adjacent."""

REACH_CHUNKS = 200
"""Chunks on either side of the window; some 2,000 lines."""

OTHER_DOCUMENT_REACH_CHUNKS = 60
"""Chunks on either side of the window in other documents."""

WORK_SLICE_SECONDS = 0.001
"""Duration of one slice of work."""


_Neighbours = tuple[str, str, str]
"""A chunk between the lines that help to decide whether it shows secrets."""


class _DocumentText:
    """The checked chunks of one document."""

    def __init__(self, language_id: str) -> None:
        self._language_id = language_id
        self._chunks: tuple[str, ...] = ()
        self._window = (0, 0)
        """The last window, as in `CompletionContext`."""
        self._around_window: object = None
        """The last chunks after and before the window, each with one more neighbour; None if they may have changed."""
        self._clean: dict[_Neighbours, str] = {}
        """The text without secrets of checked chunks, by chunk with its neighbours."""
        self.outside: tuple[str, ...] = ()
        """Clean text after and before the window."""
        self.whole: tuple[str, ...] = ()
        """Clean text in and around the window, for other documents."""
        self.is_done = False
        """Whether all chunks near the window are checked."""

    def work(self) -> None:
        """Check chunks for one slice of time."""
        end = perf_counter() + WORK_SLICE_SECONDS
        for number in self._near(REACH_CHUNKS):
            chunk = with_neighbours(self._chunks, number)
            if chunk in self._clean or holds_partial_line(self._chunks, number):
                continue  # parts of a line that is longer than a chunk are not looked up
            clean = chunk_without_secrets(self._chunks, number, self._language_id)
            self._clean[chunk] = with_line_feeds(clean)
            if perf_counter() > end:
                return
        self.is_done = True
        self._collect()

    def update(self, chunks: tuple[str, ...]) -> None:
        """Switch to a version, and forget chunks of older ones."""
        self._chunks, self._around_window, self.is_done = chunks, None, False
        if len(self._clean) > 4 * REACH_CHUNKS:
            kept = {with_neighbours(chunks, number) for number in self._near(REACH_CHUNKS)}
            self._clean = {chunk: clean for chunk, clean in self._clean.items() if chunk in kept}
        self._collect()

    def move(self, window: tuple[int, int], chunks: tuple[str, ...]) -> None:
        """Record the window in a version; mostly the chunks outside stay the same."""
        self._window, (first, last) = window, window
        before = max(0, first - REACH_CHUNKS - 1)
        around = chunks[max(0, last - 1) : last + REACH_CHUNKS + 1], chunks[before : first + 1]
        if around != self._around_window:
            self._chunks, self._around_window, self.is_done = chunks, around, False
            self._collect()

    def _near(self, reach: int) -> range:
        """The numbers of the chunks in the window and on either side of it."""
        first, last = self._window
        return range(max(0, first - reach), min(last + reach, len(self._chunks)))

    def _collect(self) -> None:
        near, (first, last) = self._near(REACH_CHUNKS), self._window
        after, before = range(last, near.stop), range(near.start, first)
        self.outside = (*self._clean_text(after), BOUNDARY, *self._clean_text(before))
        self.whole = tuple(self._clean_text(self._near(OTHER_DOCUMENT_REACH_CHUNKS)))

    def _clean_text(self, numbers: range) -> Iterator[str]:
        """The clean text of these chunks; an unchecked one becomes a boundary."""
        return (self._clean.get(with_neighbours(self._chunks, number), BOUNDARY) for number in numbers)


class LookupText:
    """The lookup text of all open documents; to be used from one thread."""

    def __init__(self) -> None:
        self._texts: dict[str, _DocumentText] = {}

    def update(self, snapshot: Snapshot) -> None:
        """Switch to a version of a document; its new chunks are left to `work`."""
        self._text(snapshot).update(snapshot.chunks)

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._texts.pop(uri, None)

    @property
    def pending(self) -> bool:
        """Whether there is `work` to do."""
        return not all(text.is_done for text in self._texts.values())

    def work(self) -> bool:
        """Check a few chunks; returns whether more are left."""
        text = next((text for text in self._texts.values() if not text.is_done), None)
        if text is not None:
            text.work()
        return self.pending

    def add_to(self, context: CompletionContext, snapshot: Snapshot, others: Sequence[str]) -> CompletionContext:
        """The context with text outside its window and of other documents, whose URIs come nearest first.

        The context's own lookup text stays as the farthest.
        """
        text = self._text(snapshot)
        text.move(context.window, snapshot.chunks)
        lookup_text = [
            text.outside,
            *(self._texts[uri].whole for uri in others if uri in self._texts),
            context.lookup_text,
        ]
        separated = ((*each, BOUNDARY) for each in reversed(lookup_text) if any(each))
        return replace(context, lookup_text=tuple(chain.from_iterable(separated)))

    def _text(self, snapshot: Snapshot) -> _DocumentText:
        return self._texts.setdefault(snapshot.uri, _DocumentText(snapshot.language_id))


def with_rest_of_document(context: CompletionContext, snapshot: Snapshot) -> CompletionContext:
    """The context with all the text outside its window, for a document that nobody edits."""
    lookup_text = LookupText()
    lookup_text.add_to(context, snapshot, ())
    while lookup_text.work():
        pass
    return lookup_text.add_to(context, snapshot, ())
