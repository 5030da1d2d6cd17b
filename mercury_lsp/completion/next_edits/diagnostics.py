"""Errors reported by other servers and forwarded by the client: lines that broke since the user's first edit.

Messages are not kept. Errors reported before that edit do not count, nor do reports about an older text.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Snapshot

MAX_DIAGNOSTICS = 100
"""Most errors of one report that are read."""


@dataclass(slots=True)
class _Reported:
    """The errors reported for a document."""

    source: ChunkedText | None = None
    """The text of the last report."""
    lines: frozenset[int] = frozenset()
    """Lines with new errors."""
    old: set[int] = field(default_factory=set)
    """Errors from before any edit, by their line's text and column, which edits of other lines leave unchanged."""
    is_edited: bool = False
    """Whether the user has edited any document since the first report."""


class Diagnostics:
    """The diagnostics of one connection's documents; used on the event loop's thread only."""

    def __init__(self) -> None:
        self._reported: dict[str, _Reported] = {}

    def report(self, snapshot: Snapshot, starts: Iterable[int]) -> None:
        """Replace a document's errors by those at these offsets of this version."""
        document = self._reported.setdefault(snapshot.uri, _Reported())
        errors = {at: _key(at, snapshot) for at in islice(starts, MAX_DIAGNOSTICS)}
        if not document.is_edited:
            document.old.update(errors.values())
        document.source = snapshot.source
        document.lines = frozenset(snapshot.source.line_of(at) for at, key in errors.items() if key not in document.old)

    def edited(self) -> None:
        """The user edited a document: errors that appear from now on, in any document, may follow from that."""
        for each in self._reported.values():
            each.is_edited = True

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._reported.pop(uri, None)

    def errors(self, snapshot: Snapshot) -> frozenset[int]:
        """The lines of this version of a document with new errors; none before its first report."""
        document = self._reported.get(snapshot.uri)
        return document.lines if document is not None and document.source is snapshot.source else frozenset()


def _key(at: int, snapshot: Snapshot) -> int:
    line, start = snapshot.line_at(at)
    return hash((line, at - start))
