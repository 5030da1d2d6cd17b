"""Errors and warnings of other servers, as the client forwards them: what broke when the user changed something.

Only what appears after a change says where the next edit is. What was there before says nothing, and messages are not
kept.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from mercury_lsp.completion.next_edits.change import moved_offset
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Edit, Snapshot

MAX_DIAGNOSTICS = 100
"""Diagnostics kept of a document, errors first."""

MAX_CHANGES_SINCE = 4
"""Changes that the user begins before an error that they leave alone says nothing more."""

REPORTS_REMEMBERED = 8
"""Reports after which a diagnostic that went counts as new. More than one, because editors may pass on the ranges of an
older text when the user types meanwhile."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error or a warning about the text at [start, end) of a document as it is now."""

    start: int
    end: int
    is_error: bool
    change: int | None = None
    """The number of the user's change after which it appeared; None if it was there before."""

    def after(self, edit: Edit) -> "Diagnostic":
        """It after an edit of its document."""
        return replace(self, start=moved_offset(self.start, edit), end=moved_offset(self.end, edit))


@dataclass(frozen=True, slots=True)
class Evidence:
    """The lines of one version of a document in which something is wrong since the user's change."""

    errors: frozenset[int] = frozenset()
    hints: frozenset[int] = frozenset()
    """Lines with warnings, and those with errors for which the user asked what can be done."""
    is_current: bool = False
    """Whether the errors were reported of this text; otherwise of an older one, edited since."""

    def rank(self, first: int, last: int) -> int:
        """How little speaks for the lines from `first` to `last`: 0 for an error, 1 for a hint, otherwise 2."""
        lines = range(first, last + 1)
        return 0 if not self.errors.isdisjoint(lines) else 1 if not self.hints.isdisjoint(lines) else 2


NO_EVIDENCE = Evidence()


def no_evidence(snapshot: Snapshot) -> Evidence:
    """Where nothing is reported."""
    return NO_EVIDENCE


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
        self._asked_about: tuple[ChunkedText, frozenset[int]] | None = None

    def report(self, snapshot: Snapshot, diagnostics: Iterable[Diagnostic]) -> None:
        """Take all diagnostics of this version of a document, in place of those reported before."""
        document = self._reported.setdefault(snapshot.uri, _Reported(self._changes, snapshot.source))
        document.reports += 1
        document.source = snapshot.source
        document.diagnostics.clear()
        for each in sorted(diagnostics, key=lambda one: not one.is_error)[:MAX_DIAGNOSTICS]:
            key = _key(each, snapshot)
            change = document.change_of(key, self._changes)
            document.known[key] = change, document.reports
            document.diagnostics.append(replace(each, change=change))
        oldest = document.reports - REPORTS_REMEMBERED
        document.known = {key: each for key, each in document.known.items() if each[1] > oldest}

    def asked_about(self, snapshot: Snapshot, lines: Iterable[int]) -> None:
        """The user asks what can be done about the errors in these lines; for documents without reports."""
        self._asked_about = (snapshot.source, frozenset(lines)) if snapshot.uri not in self._reported else None

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
        asked = self._asked_about
        at_cursor = asked[1] if asked is not None and asked[0] is snapshot.source else frozenset[int]()
        document = self._reported.get(snapshot.uri)
        if document is None:
            return Evidence(hints=at_cursor)
        fresh = [each for each in document.diagnostics if self._is_fresh(each)]
        errors, warnings = (
            frozenset(snapshot.source.line_of(each.start) for each in fresh if each.is_error is is_error)
            for is_error in (True, False)
        )
        return Evidence(errors, warnings, document.source is snapshot.source)

    def _is_fresh(self, each: Diagnostic) -> bool:
        return each.change is not None and self._changes - each.change < MAX_CHANGES_SINCE

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
        if self.evidence(before).rank(first, last):
            self._changes += 1
        return before.uri, edit.start, stop


def _key(diagnostic: Diagnostic, snapshot: Snapshot) -> int:
    line, start = snapshot.line_at(diagnostic.start)
    return hash((line, diagnostic.start - start, diagnostic.is_error))
