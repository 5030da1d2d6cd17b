"""Next edits for clients that send a document with a region and recent edits."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

from mercury_engine.api import MAX_REGION_LINES, Control, EditHunk, Rewrite, RewriteRequest

from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.completion.next_edits.region_edits import MIN_PROBABILITY
from mercury_lsp.completion.next_edits.rewriting import RewrittenLines, rewrite_region
from mercury_lsp.documents.document import Document, Snapshot
from mercury_lsp.documents.languages import language_of
from mercury_lsp.documents.redaction import change_without_secrets
from mercury_lsp.http.errors import ApiError
from mercury_lsp.http.service import Service

LINES_ABOVE_CURSOR = 8
"""Lines above the cursor that are rewritten if a region is too long for the engine."""

MAX_HUNKS = 16

MAX_DIFF_CHARS = 100_000
"""Of a longer diff only the end counts."""

WINDOW_CHARS = 16_000
"""Characters on each side of the cursor that are used; the model sees fewer."""

DEADLINE_MS = 10_000.0
"""After this a rewrite is given up; clients wait longer than an editor's user."""

NO_EDITS = (
    "this model makes no edits; run mercury-lsp models add qwen2.5-coder-0.5b, then mercury-lsp models use "
    "qwen2.5-coder-0.5b --edits, and start the server again"
)

_FILE = re.compile(r"^(?:\+\+\+ (?:b/)?|File: )(.*?)(?:\t.*)?$")


@dataclass(frozen=True, slots=True)
class EditedDocument:
    """A document, the region that may change, and the user's recent edits."""

    text: str
    start: int
    end: int
    """The region [start, end), by characters."""
    path: str = ""
    cursor: int | None = None
    """A character of the text."""
    history: tuple[EditHunk, ...] = ()
    """Oldest first."""

    @classmethod
    def whole(cls, text: str, path: str, history: tuple[EditHunk, ...]) -> Self:
        """A document that may change anywhere, without a cursor."""
        return cls(text, 0, len(text), path, history=history)

    @classmethod
    def marked(cls, before: str, region: str, after: str, mark: str, path: str, history: tuple[EditHunk, ...]) -> Self:
        """A document in three parts; the mark in the region, if any, is the cursor."""
        cursor, region = region.find(mark), region.replace(mark, "", 1)
        start, end = len(before), len(before) + len(region)
        return cls(before + region + after, start, end, path, None if cursor < 0 else start + cursor, history)

    def window(self) -> tuple["EditedDocument", int]:
        """The lines around the cursor or the region's start, and their offset."""
        middle = self.start if self.cursor is None else self.cursor
        first, last = max(0, middle - WINDOW_CHARS), min(len(self.text), middle + WINDOW_CHARS)
        first = self.text.find("\n", first, middle) + 1 or first if first else 0
        last = self.text.rfind("\n", middle, last) + 1 or last if last < len(self.text) else last
        start, end = (min(max(each, first), last) - first for each in (self.start, self.end))
        cursor = None if self.cursor is None else self.cursor - first
        return replace(self, text=self.text[first:last], start=start, end=end, cursor=cursor), first

    def region(self, snapshot: Snapshot) -> Place:
        """The region's lines, or those around the cursor if there are too many."""
        line_of = snapshot.source.line_of
        first, last = line_of(self.start), line_of(max(self.start, self.end - 1))
        line = line_of(self.start if self.cursor is None else self.cursor)
        if last - first >= MAX_REGION_LINES:
            first = max(first, min(line - LINES_ABOVE_CURSOR, last + 1 - MAX_REGION_LINES))
        end = min(last + 1, first + MAX_REGION_LINES)
        return Place(snapshot, self.path, line, first, end)


@dataclass(frozen=True, slots=True)
class RewrittenRegion:
    """A region and the model's changes, from the top down."""

    document: EditedDocument
    changes: tuple[RewrittenLines, ...]
    tokens_read: int
    steps: int
    """Forward passes."""

    @property
    def text(self) -> str:
        """The region after the changes."""
        text, end = self.document.text, self.document.end
        for edit in (each.edit for each in reversed(self.changes)):
            text = text[: edit.start] + edit.inserted + text[edit.end :]
            end += edit.new_end - edit.end
        return text[self.document.start : end]


async def rewritten(service: Service, asked: EditedDocument) -> RewrittenRegion:
    """The region rewritten. Raises ApiError if no model here rewrites, and what the engine raises."""
    await service.engine()
    if not service.edits.can_rewrite:
        raise ApiError(501, NO_EDITS, "model")
    near, first = asked.window()
    snapshot = Document("untitled:", language_of(near.path), 0, near.text).snapshot()
    region, answers = near.region(snapshot), list[Rewrite]()

    async def rewrite(request: RewriteRequest, control: Control) -> Rewrite | None:
        found = await service.rewrite(request, control)
        answers.extend(() if found is None else (found,))
        return found

    control = Control()
    try:
        found = await rewrite_region(rewrite, region, asked.history, MIN_PROBABILITY, DEADLINE_MS, control)
    finally:
        control.cancel.set()
    changes = tuple(
        replace(each, edit=replace(each.edit, start=each.edit.start + first))
        for each in found or ()
        if each.probability >= MIN_PROBABILITY
    )
    read, steps = (sum(getattr(each, name) for each in answers) for name in ("tokens_read", "steps"))
    return RewrittenRegion(asked, changes, read, steps)


def read_diff(diff: str, path: str) -> tuple[EditHunk, ...]:
    """The hunks of unified diffs, without secrets; those of the file at `path` count as the document's own."""
    return tuple(map(clean_hunk, deque(_hunks(diff[-MAX_DIFF_CHARS:], path), MAX_HUNKS)))


def _hunks(diff: str, path: str) -> Iterator[EditHunk]:
    other: str | None = None
    removed, inserted = list[str](), list[str]()
    for line in (*diff.splitlines(), "@@"):
        mark, rest = line[:1], line[1:] + "\n"
        if named := _FILE.match(line):
            other = None if named[1] in ("", path) or path.endswith("/" + named[1]) else named[1]
        elif line.startswith("--- ") and not (removed or inserted):
            continue
        elif mark == "-":
            removed.append(rest)
        elif mark == "+":
            inserted.append(rest)
        else:
            if removed or inserted:
                yield EditHunk(0, "".join(removed), "".join(inserted), other)
            removed, inserted = [], []


def clean_hunk(hunk: EditHunk) -> EditHunk:
    removed, inserted = change_without_secrets(hunk.removed, hunk.inserted, language_of(hunk.path or ""), "", "")
    return EditHunk(0, removed, inserted, hunk.path)
