"""What the user changed last: edits that touch each other are one change, however many keys and pauses it took."""

from collections.abc import Sequence
from dataclasses import dataclass

from mercury_lsp.documents import Edit

MAX_CHARS = 400
"""A change of more is none that could be made elsewhere; it bounds the work for a key."""


@dataclass(frozen=True, slots=True)
class Change:
    """The text at [start, end) of the document as it is now, and what stood there before."""

    start: int
    old: str
    new: str

    @property
    def end(self) -> int:
        """Where the new text ends."""
        return self.start + len(self.new)

    def then(self, edit: Edit) -> "Change | None":
        """This one and an edit that touches it, as one; None for an edit elsewhere."""
        stop = edit.start + len(edit.removed)
        if stop < self.start or edit.start > self.end:
            return None
        before = edit.removed[: max(0, self.start - edit.start)]
        after = edit.removed[max(0, self.end - edit.start) :]
        kept = self.new[: max(0, edit.start - self.start)], self.new[max(0, stop - self.start) :]
        return Change(min(self.start, edit.start), before + self.old + after, kept[0] + edit.inserted + kept[1])


def last_change(change: Change | None, edits: Sequence[Edit]) -> Change | None:
    """The change after more edits; None when it has become too large, or was none yet."""
    for edit in edits:
        if edit.removed == edit.inserted:  # a document that was sent again
            continue
        change = (change.then(edit) if change else None) or Change(edit.start, edit.removed, edit.inserted)
        if len(change.old) + len(change.new) > MAX_CHARS:
            change = None
    return change
