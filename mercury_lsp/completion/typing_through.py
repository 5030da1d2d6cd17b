"""Follows the user's latest edits: typing through a suggestion, taking it back, deleting text."""

from collections import deque
from dataclasses import dataclass, replace

from mercury_engine.text.common_prefix import common_prefix

from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.context.context import CompletionContext
from mercury_lsp.documents.chunked_text import with_plain_breaks
from mercury_lsp.documents.document import Edit, Snapshot

REFUSED_AFTER_CHARS = 2
"""Differing characters after which a text on display counts as refused; a single one may be a slip."""

REMEMBERED_REFUSALS = 16
"""Number of refused texts of a document that are not shown again in the same place."""


@dataclass(slots=True)
class SuggestionAnchor:
    """The offset of a completion request, and the text typed there since then."""

    start: int
    suggestion: Suggestion | None = None
    """Shown with the cursor at `start`; None while the model works on it."""
    ahead: Suggestion | None = None
    """The next suggestion, prepared in case the user accepts this one."""
    is_accepted: bool = False
    """The user accepted the suggestion, so it is not offered again."""
    earlier: Suggestion | None = None
    """The suggestion that was on display here when the request came."""
    line: str = ""
    """The line before `start`."""
    written: str = ""
    """The text typed at `start`, as reported by the edits."""

    @property
    def end(self) -> int:
        """Where the typed text ends."""
        return self.start + len(self.written)

    @property
    def typed(self) -> str:
        """The typed text with plain line breaks."""
        return with_plain_breaks(self.written)

    def with_known_id(self, suggestion: Suggestion) -> Suggestion:
        """The suggestion, under the earlier one's id if the texts are equal: some clients list several answers."""
        if self.earlier is None or self.earlier.text != suggestion.text:
            return suggestion
        return replace(suggestion, id=self.earlier.id)

    def follow(self, edit: Edit) -> bool:
        """Follow an edit of the typed text; False when the edit touches anything else."""
        if not self.start <= edit.start <= edit.end <= self.end:
            return False
        at = edit.start - self.start
        self.written = self.written[:at] + edit.inserted + self.written[at + len(edit.removed) :]
        return True

    @property
    def is_refused(self) -> bool:
        """Whether the user has typed something else, and more than a slip."""
        if self.suggestion is None or self.is_accepted:
            return False
        return len(self.typed) - common_prefix(self.typed, self.suggestion.text) >= REFUSED_AFTER_CHARS

    def is_written(self, offset: int) -> bool:
        """Whether all of the suggestion was typed or accepted, up to the offset."""
        return self.suggestion is not None and self.end == offset and self.typed == self.suggestion.text


class TypingThrough:
    """Follows the edits of one open document around its suggestion; records every edit, in order."""

    def __init__(self) -> None:
        self._anchor: SuggestionAnchor | None = None
        """The newest request's anchor."""
        self._shown_anchor: SuggestionAnchor | None = None
        """The anchor of the last suggestion shown before that request."""
        self._deletion: Edit | None = None
        self._line_end: int | None = None
        """Offset at which a suggestion to the line's end was last fully typed or accepted; None after other edits."""
        self._refused = deque[tuple[str, str]](maxlen=REMEMBERED_REFUSALS)
        """The line before a refused text, and the line with it."""

    @property
    def shown_anchor(self) -> SuggestionAnchor | None:
        """Where a suggestion was last shown, even if the user typed something else since."""
        has_suggestion = self._anchor is not None and self._anchor.suggestion is not None
        anchor = self._anchor if has_suggestion else self._shown_anchor
        return None if anchor is None or anchor.is_accepted else anchor

    def record(self, edit: Edit) -> bool:
        """Follow an edit; returns whether the user has typed against the text on display with it."""
        if self._shown_anchor is not None and not self._shown_anchor.follow(edit):
            self._shown_anchor = None
        if self._anchor is not None and not self._anchor.follow(edit):
            self._anchor = None
        self._deletion = _joined(self._deletion, edit) if edit.removed and not edit.inserted else None
        self._line_end = None
        shown = self.shown_anchor
        if shown is None or shown.suggestion is None or not shown.is_refused:
            return False
        self._refused.append((shown.line, shown.line + shown.suggestion.text))
        shown.is_accepted = True  # nothing more comes of it
        return True

    def anchor_at(self, snapshot: Snapshot, offset: int) -> SuggestionAnchor:
        """The anchor of a new request; it follows the edits that come while the model works."""
        self._notice_line_end(offset)
        self._shown_anchor = self.shown_anchor
        shown = self._shown_anchor
        earlier = self._remaining(shown, snapshot, offset) if shown is not None else None
        line, start = snapshot.line_at(offset)
        self._anchor = SuggestionAnchor(offset, earlier=earlier, line=line[: offset - start])
        return self._anchor

    def accepted(self, suggestion_id: str) -> None:
        """The suggestion was accepted: it is not offered again."""
        if self._anchor and self._anchor.suggestion and self._anchor.suggestion.id == suggestion_id:
            self._anchor.is_accepted = True

    def remainder(self, snapshot: Snapshot, offset: int) -> Suggestion | None:
        """The rest of the last suggestion if a prefix of it was typed; after all of it, the prepared next one."""
        self._notice_line_end(offset)
        anchor = self._anchor
        if anchor is None:
            return None
        if anchor.ahead and anchor.is_written(offset):
            anchor = self._anchor = SuggestionAnchor(offset, anchor.ahead)
        return self._remaining(anchor, snapshot, offset)

    def has_finished_line(self, offset: int) -> bool:
        """Whether a suggestion to its line's end was fully typed or accepted up to the offset.

        `remainder` and `anchor_at` notice it, and it stays true until the next edit.
        """
        return self._line_end == offset

    def was_taken_back(self, context: CompletionContext, text: str) -> bool:
        """Whether the user has just deleted a text at the cursor, or part of it, or typed something else instead."""
        deleted, offered, line = self._deleted_at(context.offset).rstrip(), text.rstrip(), context.line_prefix
        if deleted and (offered.startswith(deleted) or deleted.startswith(offered)):
            return True
        return any(line.startswith(before) and whole.startswith(line + text) for before, whole in self._refused)

    def _deleted_at(self, offset: int) -> str:
        """The text that the last edits deleted at an offset, with plain line breaks; empty if they were others."""
        deletion = self._deletion
        return with_plain_breaks(deletion.removed) if deletion is not None and deletion.start == offset else ""

    def _notice_line_end(self, offset: int) -> None:
        anchor = self._anchor
        if anchor and anchor.suggestion and anchor.suggestion.is_finished and anchor.is_written(offset):
            self._line_end = offset

    def _remaining(self, anchor: SuggestionAnchor, snapshot: Snapshot, offset: int) -> Suggestion | None:
        """The untyped rest of an anchor's suggestion; None if nothing is left or the user took it back."""
        if anchor.suggestion is None or anchor.is_accepted or anchor.end != offset:
            return None
        typed, text = anchor.typed, anchor.suggestion.text
        if typed == text or not text.startswith(typed) or self._deleted_at(offset).startswith(text[len(typed) :]):
            return None
        position = snapshot.position_at(offset)
        rest = anchor.suggestion.after(len(typed))
        return replace(rest, start=position, end=position, steps=0, elapsed_ms=0.0)


def _joined(earlier: Edit | None, later: Edit) -> Edit:
    """Two deletions at the same place, by Backspace or Delete, as one; otherwise the later one."""
    if earlier is None:
        return later
    if later.start + len(later.removed) == earlier.start:
        return replace(later, removed=later.removed + earlier.removed)
    if later.start == earlier.start:
        return replace(later, removed=earlier.removed + later.removed)
    return later
