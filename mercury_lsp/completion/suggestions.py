"""A suggestion: text to insert at the cursor, with its confidence."""

import re
from dataclasses import dataclass, field, replace
from typing import Literal
from uuid import uuid4

from mercury_engine.api import Fill
from mercury_engine.text.common_prefix import common_prefix

from mercury_lsp.context.context import CompletionContext
from mercury_lsp.documents.document import Edit, Snapshot

Position = tuple[int, int]
"""Line and UTF-16 column, both from 0."""

Source = Literal["fill", "region", "rule"]
"""Who proposes a text: a fill at the cursor, a region that a model rewrites, or a rule."""

_PIECE = re.compile(r"\w+|[^\w\s]")

_TO_FIRST_LINE_END = re.compile(r"\s*[^\r\n]+")


@dataclass(frozen=True, slots=True)
class Renaming:
    """A name changed in some places of a document, and the places that still have the old one."""

    old: str
    new: str
    made: int
    left: tuple[Edit, ...]
    """What remains to be done, without what the user dismissed."""
    must_go_on: bool
    """The name was changed where it is bound, or in two places: without the rest it would be undefined."""
    is_told: bool
    """The places come from another language server."""
    offered: int = 1
    """Number of places that are offered at once: those in one line."""

    @property
    def remaining(self) -> int:
        """Number of places with the old name."""
        return len(self.left)

    @property
    def total(self) -> int:
        """Number of all places."""
        return self.made + self.remaining

    @property
    def label(self) -> str:
        """A line for the user."""
        first, last = self.made + 1, self.made + self.offered
        offered = f"{first}" if self.offered == 1 else f"{first}–{last}"
        return f"rename {self.old} to {self.new} ({offered} of {self.total})"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Text that replaces [start, end) of the cursor's line."""

    text: str
    start: Position
    end: Position
    confidence: float
    """Between 0 and 1."""
    steps: int
    """Denoise steps; 0 when no model was called."""
    elapsed_ms: float
    is_finished: bool = False
    """It ends where the gap ends; otherwise its rest was cut off."""
    renaming: Renaming | None = None
    """The renaming that this edit continues."""
    elsewhere: Snapshot | None = None
    """The document that it edits, if not the requested one."""
    unsure_from: int | None = None
    """Index of the first character from which the text is more likely wrong than right; None if there is none."""
    source: Source = "fill"
    id: str = field(default_factory=lambda: uuid4().hex)

    @classmethod
    def at_cursor(cls, context: CompletionContext, text: str, fill: Fill) -> "Suggestion":
        """A new suggestion from a fill; `text` is its postprocessed text."""
        at, unsure_from = context.position, _within(fill.unsure_from, text)
        milliseconds = fill.elapsed * 1000
        return cls(text, at, at, fill.confidence, fill.steps, milliseconds, fill.is_finished, unsure_from=unsure_from)

    @classmethod
    def replacing(
        cls, snapshot: Snapshot, edit: Edit, confidence: float, seconds: float, source: Source = "rule"
    ) -> "Suggestion":
        """An edit of a document, found in `seconds` without a denoise step."""
        start, end = snapshot.position_at(edit.start), snapshot.position_at(edit.end)
        return cls(edit.inserted, start, end, confidence, steps=0, elapsed_ms=seconds * 1000, source=source)

    def seen_from(self, asked: Snapshot, edited: Snapshot) -> "Suggestion":
        """The suggestion with the document that it edits, if that isn't the one asked about."""
        return self if edited.uri == asked.uri else replace(self, elsewhere=edited)

    def after(self, count: int) -> "Suggestion":
        """The remainder after its first `count` characters were typed."""
        unsure_from = None if self.unsure_from is None else max(0, self.unsure_from - count)
        return replace(self, text=self.text[count:], unsure_from=unsure_from)

    def preceded_by(self, before: str, start: Position) -> "Suggestion":
        """The suggestion extended to the left by `before`, which the document already has at `start`."""
        unsure_from = None if self.unsure_from is None else self.unsure_from + len(before)
        return replace(self, text=before + self.text, start=start, unsure_from=unsure_from)

    def as_ghost_text(self, snapshot: Snapshot, cursor: int) -> "Suggestion | None":
        """The edit as ghost text, if it only inserts text at the cursor of its document; else None.

        Lines inserted below the cursor's line count, too, if the cursor is at that line's end.
        """
        start, end = snapshot.offset_at(*self.start), snapshot.offset_at(*self.end)
        text, line_end = self.text, snapshot.source.line_bounds(cursor)[1]
        is_at_end = not snapshot.slice(cursor, line_end).strip()
        if cursor == line_end < start == snapshot.source.offset_at(snapshot.source.line_of(cursor) + 1, 0):
            start, text = cursor, snapshot.slice(cursor, start) + text
        before, after = snapshot.slice(start, cursor), snapshot.slice(cursor, max(cursor, end))
        inserted = text[len(before) : len(text) - len(after)]
        if self.elsewhere is not None or not start <= cursor <= end or before + inserted + after != text:
            return None
        if not inserted.strip() or ("\n" in inserted and not is_at_end):
            return None
        at = snapshot.position_at(cursor)
        return replace(self, text=inserted, start=at, end=at)

    def first_line(self) -> "Suggestion | None":
        """A shorter alternative that ends with the first line that is not blank; None if there are no more lines."""
        found = _TO_FIRST_LINE_END.match(self.text)
        shorter = found[0].rstrip() if found else ""
        if shorter in ("", self.text.rstrip()):
            return None
        return replace(self, id=uuid4().hex, text=shorter, unsure_from=_within(self.unsure_from, shorter))


def differs(text: str, other: str) -> bool:
    """Whether two texts differ in more than a word or a mark; a word is typed faster than an alternative is read."""
    ours, theirs = _PIECE.findall(text), _PIECE.findall(other)
    same = common_prefix(ours, theirs)
    ours, theirs = ours[same:], theirs[same:]
    same = common_prefix(reversed(ours), reversed(theirs))
    return max(len(ours), len(theirs)) - same > 1


def _within(index: int | None, text: str) -> int | None:
    return index if index is not None and index < len(text) else None
