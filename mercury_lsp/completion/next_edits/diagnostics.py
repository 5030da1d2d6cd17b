"""Errors of other servers, as the client forwards them: where something broke since the user changed something.

Messages are not kept. What was reported before the user's first edit says nothing, nor does a report about an older
text.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Snapshot

MAX_DIAGNOSTICS = 100
"""Errors of one report that are looked at."""


@dataclass(slots=True)
class _Reported:
    """What was reported of a document."""

    source: ChunkedText | None = None
    """The text of the last report."""
    lines: frozenset[int] = frozenset()
    """Its lines with errors that are new."""
    old: set[int] = field(default_factory=set)
    """Errors from before any edit, by their line's text and their column: edits of other lines leave these."""
    is_edited: bool = False
    """Whether the user has edited any document since the first report."""


class Diagnostics:
    """The diagnostics of one connection's documents; to be used from the event loop's thread."""

    def __init__(self) -> None:
        self._reported: dict[str, _Reported] = {}

    def report(self, snapshot: Snapshot, starts: Iterable[int]) -> None:
        """Take the offsets of all errors in this version of a document, in place of those reported before."""
        document = self._reported.setdefault(snapshot.uri, _Reported())
        errors = {at: _key(at, snapshot) for at in islice(starts, MAX_DIAGNOSTICS)}
        if not document.is_edited:
            document.old.update(errors.values())
        document.source = snapshot.source
        document.lines = frozenset(snapshot.source.line_of(at) for at, key in errors.items() if key not in document.old)

    def edited(self) -> None:
        """The user edited a document: what appears from now on, in any of them, may be due to that."""
        for each in self._reported.values():
            each.is_edited = True

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._reported.pop(uri, None)

    def errors(self, snapshot: Snapshot) -> frozenset[int]:
        """The lines of this version of a document in which an error appeared; none if it was not reported of yet."""
        document = self._reported.get(snapshot.uri)
        return document.lines if document is not None and document.source is snapshot.source else frozenset()


def _key(at: int, snapshot: Snapshot) -> int:
    line, start = snapshot.line_at(at)
    return hash((line, at - start))
