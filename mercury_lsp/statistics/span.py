"""A span of a document, tracked through edits."""

from dataclasses import dataclass

from mercury_engine.text.common_prefix import common_text_prefix

from mercury_lsp.documents.document import Edit, Snapshot

MAX_SPAN_CHARS = 2_000
"""Longest tracked text, in code points; a span that grows longer is lost."""


@dataclass(slots=True)
class TrackedSpan:
    """Text at an offset (code points) of a document."""

    start: int
    text: str = ""
    lost: bool = False
    """It is no longer tracked; `text` is the last known text."""

    @property
    def end(self) -> int:
        """The offset after the text."""
        return self.start + len(self.text)

    def appended(self, edit: Edit) -> str | None:
        """The text that an edit inserts directly after the span; None if it does anything else.

        The edit may be written as a larger replacement.
        """
        lead = self.end - edit.start
        if not 0 <= lead <= len(edit.removed) or edit.removed[:lead] != edit.inserted[:lead]:
            return None
        tail, rest = edit.removed[lead:], edit.inserted[lead:]
        return rest[: len(rest) - len(tail)] if rest.endswith(tail) else None

    def append(self, text: str) -> None:
        """Extend the span by text inserted after it."""
        self._become(self.start, self.text + text)

    def prepend(self, text: str) -> None:
        """Extend the span by text inserted directly before it."""
        self._become(self.start, text + self.text)

    def follow(self, edit: Edit) -> bool:
        """Move and change with an edit; False if it replaces text directly before the span, or crosses its edge."""
        if self.lost:
            return False
        edit = minimal(edit)
        first, last = edit.start, edit.start + len(edit.removed)
        if last <= self.start:
            self.start += len(edit.inserted) - len(edit.removed)
            return last < self.start or not edit.removed
        if first >= self.end:
            return True
        if self.start <= first and last <= self.end:
            self._become(self.start, _spliced(self.text, edit, first - self.start, last - self.start))
        else:
            self._replaced_across(edit, first, last)
            return False
        return True

    def _replaced_across(self, edit: Edit, first: int, last: int) -> None:
        """Find the text in a larger replacement, as when a formatter sends the whole document."""
        if not self.text:
            self.start = first
        elif (at := edit.inserted.find(self.text)) >= 0:
            self.start = first + at
        else:
            head = self.text[: max(0, first - self.start)]
            tail = self.text[last - self.start :] if last < self.end else ""
            self._become(min(first, self.start), head + edit.inserted + tail)

    def _become(self, start: int, text: str) -> None:
        if len(text) > MAX_SPAN_CHARS:
            self.lost = True
        else:
            self.start, self.text = start, text


def minimal(edit: Edit) -> Edit:
    """The same edit without the common prefix and suffix of its texts."""
    if not edit.removed or not edit.inserted:
        return edit
    room = min(len(edit.removed), len(edit.inserted))
    lead = common_text_prefix(edit.removed, edit.inserted, room)
    trail = common_text_prefix(edit.removed[::-1], edit.inserted[::-1], room - lead)
    return Edit(
        edit.start + lead,
        edit.removed[lead : len(edit.removed) - trail],
        edit.inserted[lead : len(edit.inserted) - trail],
    )


def edit_between(before: Snapshot, after: Snapshot) -> Edit:
    """The single edit from one version to the next, for changes sent as a whole text."""
    start, end, new = before.source.difference(after.text)
    return Edit(start, before.slice(start, end), new)


def _spliced(text: str, edit: Edit, first: int, last: int) -> str:
    return text[:first] + edit.inserted + text[last:]
