"""The user's edits of all documents as hunks: whole lines before and after, with their path, oldest first.

A key only moves and joins a few offsets; lines are read from the documents on request. Hunks survive a switch to
another file, and a document that is closed and opened again unchanged.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from time import monotonic

from mercury_engine.api import EditHunk
from mercury_engine.text.lines import equal_ends, lines_of

from mercury_lsp.completion.next_edits.edits import effective, merged, moved, of_user
from mercury_lsp.context.open_documents import OpenDocuments
from mercury_lsp.documents.chunked_text import ChunkedText, with_line_feeds
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.documents.redaction import around_lines, change_without_secrets
from mercury_lsp.documents.roots import path_of

MAX_HUNKS = 16
"""Number of changes kept, for all documents together; an edit moves those of its document, at a microsecond each."""

MAX_HUNK_CHARS = 4_000
"""Longest change kept, old and new text together; a longer one was made by a tool."""

MAX_HISTORY_CHARS = 20_000
"""Characters of all changes together; the oldest are forgotten first."""

RELOAD_SECONDS = 1.0
"""Seconds before and after a report of a changed file in which edits of it count as the editor's reload."""

SAVE_REPORT_SECONDS = 3.0
"""Seconds after a save by the client in which a report of the file is of that save."""

MAX_TYPED_CHARS = 3
"""Characters that one key inserts or removes at most, with a bracket's partner."""

MIN_SWITCHED_FILES = 4
"""Closed files that must change on disk together to count as a switch of branches."""

MAX_REPORTS = 16
"""Most reports of changed files that wait to be read."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Whole lines replaced in a document; the lines `after` begin at `line` of the current document."""

    uri: str
    path: str
    language_id: str
    line: int
    before: str
    after: str
    around: tuple[str, str] = ("", "")
    """The text above and below, which decides whether the lines look like secrets."""

    @property
    def end_line(self) -> int:
        """One past the last line of `after`."""
        return self.line + len(lines_of(self.after))

    def covers(self, line: int) -> bool:
        """Whether it changed a line of its document; if it only removed lines, the line after them counts."""
        return self.line <= line < max(self.end_line, self.line + 1)

    def offset_in(self, snapshot: Snapshot) -> int:
        """Its start offset in its document; 0 in any other."""
        return snapshot.source.offset_at(self.line, 0) if self.uri == snapshot.uri else 0


@dataclass(frozen=True, slots=True)
class _Tracked:
    """A change, by offsets of the current document."""

    uri: str
    change: Edit
    seconds: float
    """When it began."""
    is_typed: bool
    """It began with a single key."""


class History:
    """The hunks of one connection; an edit is recorded in time that does not depend on the text's length."""

    def __init__(self, documents: OpenDocuments, clock: Callable[[], float] = monotonic):
        self._documents, self._clock = documents, clock
        self._tracked: list[_Tracked] = []
        self._cut: dict[str, tuple[tuple[ChunkedText, str, list[_Tracked]] | None, list[tuple[int, Hunk]]]] = {}
        """By URI, the text, path and changes that a document's hunks were last computed from, and the hunks; of a
        closed document, only these."""
        self._reports: deque[tuple[float, frozenset[Path]]] = deque(maxlen=MAX_REPORTS)
        """Unread reports: when files changed on disk, and which."""
        self._reloaded: dict[str, float] = {}
        """When a document's file last changed on disk, other than by the client's save."""
        self._saved: dict[str, float] = {}
        """When the client last saved a document."""
        self.taken_back: tuple[str, Edit] | None = None
        """URI and place of the user's change that the last edit took back."""

    def record(self, uri: str, edits: Sequence[Edit]) -> None:
        """Record one notification's edits, in order; every edit of the document must be recorded."""
        if not edits:
            return
        self._take_reports()
        is_typed = len(edits) == 1 and max(len(edits[0].removed), len(edits[0].inserted)) <= MAX_TYPED_CHARS
        is_reloading = not is_typed and self._clock() - self._reloaded.get(uri, -RELOAD_SECONDS) < RELOAD_SECONDS
        edits, is_users = of_user(edits)
        for edit in effective(edits):
            self._record(uri, edit, is_users and not is_reloading, is_typed)
        del self._tracked[:-MAX_HUNKS]
        while sum(each.change.size for each in self._tracked) > MAX_HISTORY_CHARS:
            del self._tracked[0]

    def closed(self, uri: str) -> None:
        """Keep the hunks of a document that is about to be closed."""
        self._reloaded.pop(uri, None)
        self._saved.pop(uri, None)
        kept = {each.uri for each in self._tracked}
        self._cut = {other: cut for other, cut in self._cut.items() if other in kept}
        if uri in kept:
            self._cut[uri] = None, self._numbered(uri)

    def opened(self, uri: str) -> None:
        """A document was opened, perhaps again; changes that no longer stand are forgotten."""
        if any(each.uri == uri for each in self._tracked):
            now = self._documents.snapshot(uri)
            self._tracked = [
                each
                for each in self._tracked
                if each.uri != uri or now.slice(each.change.start, each.change.new_end) == each.change.inserted
            ]

    def saved(self, uri: str) -> None:
        """The client has saved a document, which explains that the file changed on disk."""
        self._saved[uri] = self._clock()

    def files_changed(self, paths: Iterable[Path]) -> None:
        """Files changed on disk; for any thread. The report is read before the next edit or request.

        An editor that reloads them sends edits that are not the user's. Many closed files at once mean another branch,
        to which these changes do not belong.
        """
        self._reports.append((self._clock(), frozenset(paths)))

    def hunks(self, may_show: Callable[[str], bool] = lambda uri: True) -> list[Hunk]:
        """The hunks that still stand, oldest first, of documents whose URI `may_show` allows.

        Changes of neighbouring lines are one hunk; those of white space alone are left out.
        """
        self._take_reports()
        found: list[tuple[int, Hunk]] = []
        for uri in dict.fromkeys(each.uri for each in self._tracked):
            if may_show(uri):
                found += self._numbered(uri)
        return [hunk for _, hunk in sorted(found, key=lambda pair: pair[0])]

    def changes(self, uri: str) -> list[Edit]:
        """The changes of a document that still stand, oldest first."""
        self._take_reports()
        return [each.change for each in self._tracked if each.uri == uri]

    def _take_reports(self) -> None:
        while self._reports:
            seconds, changed = self._reports.popleft()
            opened = {uri: path for uri in self._documents.uris if (path := path_of(uri)) in changed}
            if len(changed.difference(opened.values())) >= MIN_SWITCHED_FILES:
                self._tracked.clear()
            reloaded = {uri for uri in opened if not 0 <= seconds - self._saved.get(uri, inf) <= SAVE_REPORT_SECONDS}
            self._reloaded |= dict.fromkeys(reloaded, seconds)
            self._tracked = [
                each
                for each in self._tracked
                if each.uri not in reloaded or each.is_typed or abs(seconds - each.seconds) >= RELOAD_SECONDS
            ]

    def _numbered(self, uri: str) -> list[tuple[int, Hunk]]:
        """A document's hunks, each with the number of its newest change; computed once for each text."""
        numbers = [number for number, each in enumerate(self._tracked) if each.uri == uri]
        if uri not in self._documents:
            return [(numbers[-1], hunk) for _, hunk in self._cut[uri][1]]
        tracked = [self._tracked[number] for number in numbers]
        snapshot, path = self._documents.snapshot(uri), self._documents.path(uri)
        cut_from = snapshot.source, path, tracked
        if uri not in self._cut or self._cut[uri][0] != cut_from:
            hunks = ((index, _hunk(change, snapshot, path)) for index, change in _joined(tracked, snapshot))
            self._cut[uri] = cut_from, [(index, hunk) for index, hunk in hunks if _is_kept(hunk)]
        return [(numbers[index], hunk) for index, hunk in self._cut[uri][1]]

    def _record(self, uri: str, edit: Edit, is_users: bool, is_typed: bool) -> None:
        touched, kept = list[_Tracked](), list[_Tracked]()
        for each in self._tracked:
            change = each.change
            if each.uri != uri or edit.start > change.new_end:
                kept.append(each)
            elif change.start <= edit.end:
                touched.append(each)
            else:
                kept.append(replace(each, change=moved(change, edit)))
        touched.sort(key=lambda each: each.change.start)
        change = merged([each.change for each in touched], edit)
        is_changed = change.removed != change.inserted
        self.taken_back = None if is_changed or not change.removed.strip() else (uri, change)
        if (is_users or touched) and is_changed and change.size <= MAX_HUNK_CHARS:
            begun = min((each.seconds for each in touched), default=self._clock())
            kept.append(_Tracked(uri, change, begun, all(each.is_typed for each in touched) if touched else is_typed))
        self._tracked = kept


def shown(hunks: Sequence[Hunk], uri: str) -> list[EditHunk]:
    """Hunks as a model reads them with the document `uri`, without lines that look like secrets."""
    found = []
    for hunk in hunks:
        sides = change_without_secrets(hunk.before, hunk.after, hunk.language_id, *hunk.around)
        before, after = map(with_line_feeds, sides)
        if before != after:
            found.append(EditHunk(0, before, after, None if hunk.uri == uri else hunk.path))
    return found


def _joined(tracked: Sequence[_Tracked], snapshot: Snapshot) -> list[tuple[int, Edit]]:
    """The changes of one document, joined in the same or adjacent lines, each with the index of its newest part."""
    found: list[tuple[int, Edit]] = []
    for number, each in sorted(enumerate(tracked), key=lambda pair: pair[1].change.start):
        change = each.change
        if found:
            last_number, last = found[-1]
            between = snapshot.slice(last.new_end, min(change.start, last.new_end + MAX_HUNK_CHARS))
            if last.new_end + len(between) >= change.start and between.count("\n") <= 1:
                found.pop()
                number = max(number, last_number)
                old, new = last.removed + between + change.removed, last.inserted + between + change.inserted
                change = Edit(last.start, old, new)
        found.append((number, change))
    return found


def _is_kept(hunk: Hunk) -> bool:
    """Whether a hunk is short enough, and changes more than white space."""
    return len(hunk.before) + len(hunk.after) <= MAX_HUNK_CHARS and hunk.before.split() != hunk.after.split()


def _hunk(change: Edit, snapshot: Snapshot, path: str) -> Hunk:
    """The whole lines of a change, without equal lines at either end."""
    source = snapshot.source
    first = source.line_of(change.start)
    start, end = source.offset_at(first, 0), source.offset_at(source.line_of(change.new_end) + 1, 0)
    head, tail = source.slice(start, change.start), source.slice(change.new_end, end)
    before, after = lines_of(head + change.removed + tail), lines_of(source.slice(start, end))
    same, last = equal_ends(before, after)
    old, new = ("".join(lines[same : len(lines) - last]) for lines in (before, after))
    above, below = around_lines(snapshot, start, end)
    around = above + "".join(after[:same]), "".join(after[len(after) - last :]) + below
    return Hunk(snapshot.uri, path, snapshot.language_id, first + same, old, new, around)
