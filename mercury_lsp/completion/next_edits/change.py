"""A change by the user: edits that touch each other are one change, no matter how many keys and pauses it took."""

from dataclasses import dataclass

from mercury_engine.text.lines import equal_ends

from mercury_lsp.documents.document import Edit

MAX_COMPARED_CHARS = 4000
"""Longest edit, both texts together, that is narrowed to what really changed: some clients send whole lines."""


@dataclass(frozen=True, slots=True)
class Change:
    """The text at [start, end) of the current document, and the text that it replaced."""

    start: int
    old: str
    new: str

    @property
    def end(self) -> int:
        """End offset of the new text."""
        return self.start + len(self.new)

    def then(self, edit: Edit) -> "Change | None":
        """This change merged with an edit that touches it; None for an edit elsewhere."""
        stop = edit.start + len(edit.removed)
        if stop < self.start or edit.start > self.end:
            return None
        before = edit.removed[: max(0, self.start - edit.start)]
        after = edit.removed[max(0, self.end - edit.start) :]
        kept = self.new[: max(0, edit.start - self.start)], self.new[max(0, stop - self.start) :]
        return Change(min(self.start, edit.start), before + self.old + after, kept[0] + edit.inserted + kept[1])

    def moved(self, edit: Edit) -> "Change | None":
        """This change after an edit elsewhere, in constant time; None if the edit touches it."""
        if edit.start + len(edit.removed) <= self.start:
            return Change(self.start + len(edit.inserted) - len(edit.removed), self.old, self.new)
        return self if edit.start >= self.end else None


def differing(change: Change) -> Change:
    """The change without the common prefix and suffix of both texts, unless it is large.

    A key typed over a selection replaces all of it, even if the selection happens to end with the same letter.
    """
    old, new = change.old, change.new
    if len(old) + len(new) > MAX_COMPARED_CHARS or len(new) == 1 < len(old):
        return change
    lead, trail = equal_ends(old, new)
    return Change(change.start + lead, old[lead : len(old) - trail], new[lead : len(new) - trail])


def narrowed(edit: Edit) -> Edit | None:
    """The edit without equal text at its ends; None if it changes nothing: some clients send the same text again."""
    made = differing(Change(edit.start, edit.removed, edit.inserted))
    return None if made.old == made.new else Edit(made.start, made.old, made.new)


def moved_offset(offset: int, edit: Edit) -> int:
    """An offset after an edit; clamped to the edit's start if it lies within the removed text."""
    if offset >= edit.start + len(edit.removed):
        return offset + len(edit.inserted) - len(edit.removed)
    return min(offset, edit.start)
