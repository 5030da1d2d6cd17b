"""Text for n-gram lookup outside the window: the rest of the document, and other open documents.

It contains only chunks without secrets; they are checked in pauses (`work`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
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


@dataclass(slots=True, eq=False)
class _DocumentText:
    """The checked chunks of one document."""

    language_id: str
    chunks: tuple[str, ...] = ()
    window: tuple[int, int] = (0, 0)
    """The last window, as in `CompletionContext`."""
    clean: dict[_Neighbours, str] = field(default_factory=dict)
    """The text without secrets of checked chunks, by chunk with its neighbours."""
    whole: tuple[str, ...] = ()
    """Clean text in and around the window, for other documents."""
    outside: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """The last chunks after and before the window, each with one more neighbour."""
    left_out: tuple[_Neighbours | None, ...] = ()
    """Those chunks with their neighbours; None between the two parts."""
    clean_outside: tuple[str, ...] = ()
    """Their text without secrets, if checked."""
    is_done: bool = False
    """Whether all chunks near the window are checked."""

    def work(self) -> None:
        """Check chunks for one slice of time."""
        end = perf_counter() + WORK_SLICE_SECONDS
        for number in self._numbers(self._near(REACH_CHUNKS)):
            chunk = with_neighbours(self.chunks, number)
            if chunk in self.clean or holds_partial_line(self.chunks, number):
                continue  # parts of a line that is longer than a chunk are not looked up
            clean = chunk_without_secrets(self.chunks, number, self.language_id)
            self.clean[chunk] = with_line_feeds(clean)
            if perf_counter() > end:
                return
        self.is_done = True
        self._collect()

    def update(self, chunks: tuple[str, ...]) -> None:
        """Switch to a version, and forget chunks of older ones."""
        self.chunks, self.is_done = chunks, False
        if len(self.clean) > 4 * REACH_CHUNKS:
            kept = {*self._chunks(self._near(REACH_CHUNKS))}
            self.clean = {chunk: clean for chunk, clean in self.clean.items() if chunk in kept}
        self._collect()

    def move(self, window: tuple[int, int], chunks: tuple[str, ...]) -> None:
        """Record the window in a version; mostly the chunks outside stay the same."""
        self.window, (first, last) = window, window
        before = max(0, first - REACH_CHUNKS - 1)
        outside = chunks[max(0, last - 1) : last + REACH_CHUNKS + 1], chunks[before : first + 1]
        if outside != self.outside:
            self.chunks, self.outside, self.is_done = chunks, outside, False
            after = self._chunks(slice(last, last + REACH_CHUNKS))
            self.left_out = (*after, None, *self._chunks(slice(max(0, first - REACH_CHUNKS), first)))
            self._collect()

    def _near(self, reach: int) -> slice:
        return slice(max(0, self.window[0] - reach), self.window[1] + reach)

    def _collect(self) -> None:
        self.whole = self._clean_text(self._chunks(self._near(OTHER_DOCUMENT_REACH_CHUNKS)))
        self.clean_outside = self._clean_text(self.left_out)

    def _clean_text(self, chunks: Iterable[_Neighbours | None]) -> tuple[str, ...]:
        """The clean text of these chunks; None and an unchecked chunk become a boundary."""
        return tuple(self.clean.get(chunk, BOUNDARY) if chunk is not None else BOUNDARY for chunk in chunks)

    def _chunks(self, part: slice) -> Iterator[_Neighbours]:
        return (with_neighbours(self.chunks, number) for number in self._numbers(part))

    def _numbers(self, part: slice) -> range:
        return range(*part.indices(len(self.chunks)))


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
            text.clean_outside,
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
