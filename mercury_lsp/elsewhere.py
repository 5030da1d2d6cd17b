"""Text that no window shows, to be looked through and not read: the rest of the document, and other open ones.

Only chunks in which lines that look like secrets were looked for, which is done in pauses (`work`); they are then kept
without such lines.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from mercury_lsp.context import CompletionContext
from mercury_lsp.documents import Snapshot
from mercury_lsp.secret_lines import without_secrets

REACH = 300
"""Chunks on either side of the window, some 3,000 lines."""

OTHERS = 400
"""Chunks of other documents."""

SLICE = 4
"""Chunks looked at in one piece of work; a millisecond."""


@dataclass(slots=True, eq=False)
class _Text:
    """What is known of one document."""

    language_id: str
    chunks: tuple[str, ...] = ()
    window: tuple[int, int] = (0, 0)
    """The last one, as of `CompletionContext`."""
    clean: dict[str, str] = field(default_factory=dict)
    """Chunks without their secrets."""
    whole: tuple[str, ...] = ()
    """What is clean of the chunks near the window, for other documents."""
    outside: tuple[str, ...] = ()
    """What the window last left out."""
    shown: tuple[str, ...] = ()
    """The same without secrets, as far as it is known."""
    is_done: bool = False
    """Whether all chunks near the window are known."""

    @property
    def near(self) -> tuple[str, ...]:
        """Chunks of the window and around it."""
        return self.chunks[max(0, self.window[0] - REACH) : self.window[1] + REACH]

    def work(self) -> None:
        """Look at a few chunks that are not known."""
        unknown = (chunk for chunk in self.near if chunk not in self.clean)
        self.clean |= {chunk: without_secrets(chunk, self.language_id) for chunk in islice(unknown, SLICE)}
        if next(unknown, None) is None:
            self.is_done = True
            self._renew()

    def known(self, chunks: Iterable[str]) -> tuple[str, ...]:
        """Of these chunks the clean ones."""
        return tuple(filter(None, map(self.clean.get, chunks)))

    def update(self, chunks: tuple[str, ...]) -> None:
        """Go over to a version, and forget chunks of old ones."""
        self.chunks, self.is_done = chunks, False
        if len(self.clean) > 4 * REACH:
            kept = {*self.near}
            self.clean = {chunk: clean for chunk, clean in self.clean.items() if chunk in kept}
        self._renew()

    def move(self, window: tuple[int, int], chunks: tuple[str, ...]) -> None:
        """The window is here in a version; what it leaves out is the same most of the time."""
        self.window, (first, last) = window, window
        outside = (*reversed(chunks[last : last + REACH]), *chunks[max(0, first - REACH) : first])
        if outside != self.outside:
            self.outside, self.shown, self.is_done = outside, self.known(outside), False

    def _renew(self) -> None:
        self.whole = self.known(self.near)
        self.shown = self.known(self.outside)


class Elsewhere:
    """Of all open documents; to be used from one thread."""

    def __init__(self) -> None:
        self._texts: dict[str, _Text] = {}

    def update(self, snapshot: Snapshot) -> None:
        """Go over to a version of a document; what is new in it is left to `work`."""
        self._text(snapshot).update(snapshot.chunks)

    def forget(self, uri: str) -> None:
        """The document is closed."""
        self._texts.pop(uri, None)

    def work(self) -> bool:
        """Look at a few chunks; whether more are left."""
        text = next((text for text in self._texts.values() if not text.is_done), None)
        if text is not None:
            text.work()
        return text is not None

    def added_to(self, context: CompletionContext, snapshot: Snapshot, others: Sequence[str]) -> CompletionContext:
        """The context with what lies outside of its window, and with other documents: their uris, nearest first.

        What it has of other files stays, as what is farthest away.
        """
        text = self._text(snapshot)
        text.move(context.window, snapshot.chunks)
        return replace(context, elsewhere=(*context.elsewhere, *self._of(others), *text.shown))

    def _of(self, uris: Sequence[str]) -> tuple[str, ...]:
        found: tuple[str, ...] = ()
        for uri in uris:
            if uri in self._texts:
                found = (*self._texts[uri].whole[: OTHERS - len(found)], *found)
        return found

    def _text(self, snapshot: Snapshot) -> _Text:
        return self._texts.setdefault(snapshot.uri, _Text(snapshot.language_id))


def around(context: CompletionContext, snapshot: Snapshot) -> CompletionContext:
    """A context with all that lies outside of its window, of a document that nobody edits."""
    elsewhere = Elsewhere()
    elsewhere.added_to(context, snapshot, ())
    elsewhere.update(snapshot)
    while elsewhere.work():
        pass
    return elsewhere.added_to(context, snapshot, ())
