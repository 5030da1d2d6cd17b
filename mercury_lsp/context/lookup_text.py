"""Text that no window shows, to be looked through and not read: the rest of the document, and other open ones.

Only chunks in which lines that look like secrets were looked for, which is done in pauses (`work`); they are then kept
without such lines.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from time import perf_counter

from mercury_lsp.context.context import CompletionContext
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.redaction import holds_partial_line, without_secrets

BOUNDARY = ""
"""Between chunks that do not follow on one another."""

REACH_CHUNKS = 200
"""Chunks on either side of the window, some 2,000 lines."""

OTHER_DOCUMENT_REACH_CHUNKS = 60
"""The same in other documents."""

WORK_SLICE_SECONDS = 0.001
"""For one piece of work."""


@dataclass(slots=True, eq=False)
class _DocumentText:
    """What is known of one document."""

    language_id: str
    chunks: tuple[str, ...] = ()
    window: tuple[int, int] = (0, 0)
    """The last one, as of `CompletionContext`."""
    clean: dict[str, str] = field(default_factory=dict)
    """Chunks without their secrets."""
    whole: tuple[str, ...] = ()
    """What is clean in and around the window, for other documents."""
    outside: tuple[str, ...] = ()
    """What the window last left out."""
    shown: tuple[str, ...] = ()
    """The same without secrets, as far as it is known."""
    is_done: bool = False
    """Whether all chunks near the window are known."""

    def work(self) -> None:
        """Look at some chunks that are not known."""
        end = perf_counter() + WORK_SLICE_SECONDS
        for number in range(*self._near(REACH_CHUNKS).indices(len(self.chunks))):
            chunk = self.chunks[number]
            if chunk in self.clean or holds_partial_line(self.chunks, number):
                continue  # of a line that is longer than a chunk it is not told here whether it is secret
            self.clean[chunk] = without_secrets(chunk, self.language_id)
            if perf_counter() > end:
                return
        self.is_done = True
        self._renew()

    def update(self, chunks: tuple[str, ...]) -> None:
        """Go over to a version, and forget chunks of old ones."""
        self.chunks, self.is_done = chunks, False
        if len(self.clean) > 4 * REACH_CHUNKS:
            kept = {*self.chunks[self._near(REACH_CHUNKS)]}
            self.clean = {chunk: clean for chunk, clean in self.clean.items() if chunk in kept}
        self._renew()

    def move(self, window: tuple[int, int], chunks: tuple[str, ...]) -> None:
        """The window is here in a version; what it leaves out is the same most of the time."""
        self.window, (first, last) = window, window
        outside = (*chunks[last : last + REACH_CHUNKS], BOUNDARY, *chunks[max(0, first - REACH_CHUNKS) : first])
        if outside != self.outside:
            self.chunks, self.outside, self.is_done = chunks, outside, False
            self._renew()

    def _near(self, reach: int) -> slice:
        return slice(max(0, self.window[0] - reach), self.window[1] + reach)

    def _renew(self) -> None:
        self.whole = self._known(self.chunks[self._near(OTHER_DOCUMENT_REACH_CHUNKS)])
        self.shown = self._known(self.outside)

    def _known(self, chunks: Iterable[str]) -> tuple[str, ...]:
        """Of these chunks the clean ones; others leave a gap."""
        return tuple(self.clean.get(chunk, BOUNDARY) for chunk in chunks)


class LookupText:
    """Of all open documents; to be used from one thread."""

    def __init__(self) -> None:
        self._texts: dict[str, _DocumentText] = {}

    def update(self, snapshot: Snapshot) -> None:
        """Go over to a version of a document; what is new in it is left to `work`."""
        self._text(snapshot).update(snapshot.chunks)

    def forget(self, uri: str) -> None:
        """The document is closed."""
        self._texts.pop(uri, None)

    @property
    def pending(self) -> bool:
        """Whether there is `work` to do."""
        return not all(text.is_done for text in self._texts.values())

    def work(self) -> bool:
        """Look at a few chunks; whether more are left."""
        text = next((text for text in self._texts.values() if not text.is_done), None)
        if text is not None:
            text.work()
        return self.pending

    def add_to(self, context: CompletionContext, snapshot: Snapshot, others: Sequence[str]) -> CompletionContext:
        """The context with what lies outside of its window, and with other documents: their uris, nearest first.

        What it has of other files stays, as what is farthest away.
        """
        text = self._text(snapshot)
        text.move(context.window, snapshot.chunks)
        lookup_text = [
            text.shown,
            *(self._texts[uri].whole for uri in others if uri in self._texts),
            context.lookup_text,
        ]
        apart = ((*each, BOUNDARY) for each in reversed(lookup_text) if any(each))
        return replace(context, lookup_text=tuple(chain.from_iterable(apart)))

    def _text(self, snapshot: Snapshot) -> _DocumentText:
        return self._texts.setdefault(snapshot.uri, _DocumentText(snapshot.language_id))


def with_rest_of_document(context: CompletionContext, snapshot: Snapshot) -> CompletionContext:
    """A context with all that lies outside of its window, of a document that nobody edits."""
    lookup_text = LookupText()
    lookup_text.add_to(context, snapshot, ())
    while lookup_text.work():
        pass
    return lookup_text.add_to(context, snapshot, ())
