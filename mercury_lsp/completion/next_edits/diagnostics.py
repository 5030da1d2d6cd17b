"""Errors of other servers, as the client forwards them: what broke when the user changed something.

Only what appears after a change says where the next edit is. What was there before says nothing, and messages are not
kept.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from mercury_lsp.completion.next_edits.change import moved_offset
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Edit, Snapshot

MAX_DIAGNOSTICS = 100
"""Errors kept of a document."""

MAX_CHANGES_SINCE = 4
"""Changes that the user begins before an error that they leave alone says nothing more."""

REPORTS_REMEMBERED = 8
"""Reports after which a diagnostic that went counts as new. More than one, because editors may pass on the ranges of an
older text when the user types meanwhile."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error in the text at [start, end) of a document as it is now."""

    start: int
    end: int
    change: int | None = None
    """The number of the user's change after which it appeared; None if it was there before."""

    def after(self, edit: Edit) -> "Diagnostic":
        """It after an edit of its document."""
        return replace(self, start=moved_offset(self.start, edit), end=moved_offset(self.end, edit))


@dataclass(frozen=True, slots=True)
class Evidence:
    """The lines of one version of a document in which something is wrong since the user's change."""

    errors: frozenset[int] = frozenset()
    is_current: bool = False
    """Whether the errors were reported of this text; otherwise of an older one, edited since."""


@dataclass(slots=True)
class _Reported:
    """What was reported of a document."""

    first_change: int
    """The number of the user's change at the first report: until the next change all may have been there before."""
    source: ChunkedText
    """The text of the last report."""
    reports: int = 0
    diagnostics: list[Diagnostic] = field(default_factory=list)
    known: dict[int, tuple[int | None, int]] = field(default_factory=dict)
    """A diagnostic's change, and the last report that had it, by line and column: edits of other lines leave these."""

    def change_of(self, key: int, now: int) -> int | None:
        """After which change the diagnostic appeared, if the last one is `now`."""
        if key not in self.known:
            return now if now > self.first_change else None
        change, report = self.known[key]
        return now if change is not None and report < self.reports - 1 else change


class Diagnostics:
    """The diagnostics of one connection's documents; to be used from the event loop's thread."""

    def __init__(self) -> None:
        self._reported: dict[str, _Reported] = {}
        self._changes = 0
        """How many changes the user has begun."""
        self._last: tuple[str, int, int] | None = None
        """The uri, start and end of the change under way."""

    def report(self, snapshot: Snapshot, diagnostics: Iterable[Diagnostic]) -> None:
        """Take all diagnostics of this version of a document, in place of those reported before."""
        document = self._reported.setdefault(snapshot.uri, _Reported(self._changes, snapshot.source))
        document.reports += 1
        document.source = snapshot.source
        document.diagnostics.clear()
        for each in islice(diagnostics, MAX_DIAGNOSTICS):
            key = _key(each, snapshot)
            change = document.change_of(key, self._changes)
            document.known[key] = change, document.reports
            document.diagnostics.append(replace(each, change=change))
        oldest = document.reports - REPORTS_REMEMBERED
        document.known = {key: each for key, each in document.known.items() if each[1] > oldest}

    def edited(self, before: Snapshot, edits: Sequence[Edit]) -> None:
        """The user edited this version of a document."""
        if not edits:
            return
        self._last = self._extended(before, edits[0])
        document = self._reported.get(before.uri)
        for edit in edits:
            uri, start, end = self._last
            self._last = uri, start if edit.start >= start else moved_offset(start, edit), moved_offset(end, edit)
            if document is not None:
                document.diagnostics = [each.after(edit) for each in document.diagnostics]

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._reported.pop(uri, None)

    def evidence(self, snapshot: Snapshot) -> Evidence:
        """What speaks for an edit in lines of this version of a document."""
        document = self._reported.get(snapshot.uri)
        if document is None:
            return Evidence()
        oldest = self._changes - MAX_CHANGES_SINCE
        fresh = (each for each in document.diagnostics if each.change is not None and each.change > oldest)
        return Evidence(
            frozenset(snapshot.source.line_of(each.start) for each in fresh), document.source is snapshot.source
        )

    def _extended(self, before: Snapshot, edit: Edit) -> tuple[str, int, int]:
        """The change under way with an edit of this version; a new one if the edit is elsewhere.

        A fresh error that is edited belongs to the change that caused it.
        """
        stop = edit.start + len(edit.removed)
        first, last = before.source.line_of(edit.start), before.source.line_of(stop)
        if self._last is not None and self._last[0] == before.uri:
            _, start, end = self._last
            if before.source.line_of(start) - 1 <= last and first <= before.source.line_of(end) + 1:
                return before.uri, min(start, edit.start), max(end, stop)
        if self.evidence(before).errors.isdisjoint(range(first, last + 1)):
            self._changes += 1
        return before.uri, edit.start, stop


def _key(diagnostic: Diagnostic, snapshot: Snapshot) -> int:
    line, start = snapshot.line_at(diagnostic.start)
    return hash((line, diagnostic.start - start))
