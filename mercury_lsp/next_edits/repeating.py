"""What of one document may be repeated: its last change, and where that is not to be offered again."""

from collections.abc import Sequence
from itertools import islice

from mercury_lsp.documents import Edit, Snapshot
from mercury_lsp.next_edits.change import Change, last_change
from mercury_lsp.next_edits.places import Kind, Place, kind_of, places, stands_elsewhere
from mercury_lsp.next_edits.replacement import Replacement, replacement_of
from mercury_lsp.secret_lines import is_secret_line

MOST = 8
"""Places that are offered for one change before the next one is accepted."""


REMEMBERED = 16
"""Renamings; one is looked at anew for every key of a name, whenever the editor asks."""


class Repeating:
    """Told every edit in order, at a cost that does not depend on the document's length."""

    def __init__(self) -> None:
        self._change: Change | None = None
        self._repeated: Replacement | None = None
        """What was last asked for; it goes on while the user makes the same change elsewhere."""
        self._scope: int | None = None
        """Where the definition begins outside of which it means nothing, if there is one."""
        self._is_switch = False
        """The new name was there before, so the user chose another thing instead of renaming one."""
        self._is_use = False
        """The old name stands further up in its scope, so the user may have meant this one place."""
        self._renamings: dict[tuple[str, str], int | None] = {}
        """By old and new name their scopes, so that one that the user goes on with by hand is known again."""
        self._over: list[int] = []
        """Where it was offered and then edited, or dismissed."""
        self._offered: dict[str, tuple[int, int]] = {}
        """By id: where the last offer stands, and where that ends."""

    def record(self, edits: Sequence[Edit]) -> None:
        """Take note of edits."""
        self._change = last_change(self._change, edits)
        for edit in edits:
            for suggestion_id, (start, end) in list(self._offered.items()):
                if edit.start <= end and edit.start + len(edit.removed) >= start:
                    self.dismiss(suggestion_id)
            self._over = [_moved(offset, edit) for offset in self._over]
            self._scope = _moved_scope(self._scope, edit)
            self._renamings = {names: _moved_scope(scope, edit) for names, scope in self._renamings.items()}
            self._offered = {name: (_moved(a, edit), _moved(b, edit)) for name, (a, b) in self._offered.items()}

    def replacement(self, snapshot: Snapshot) -> Replacement | None:
        """What may be made elsewhere in the document as it is now; None when the last change was taken back."""
        found = replacement_of(self._change, snapshot) if self._change is not None else None
        if found is None or _is_secret(found, snapshot):
            return None
        if self._repeated is not None and found.undoes(self._repeated):
            return None
        if self._repeated is None or not found.is_same(self._repeated):
            self._begin(found, snapshot)
        self._repeated = found
        return found

    def places(self, replacement: Replacement, snapshot: Snapshot, by_key: bool) -> list[Place]:
        """Where it may be made, by rules alone, in the order in which it is to be offered; fewer to who did not ask."""
        if self._is_switch or (self._is_use and not by_key) or (kind := kind_of(replacement, snapshot)) is None:
            return []
        found = places(replacement, kind, self._scope, snapshot)
        return list(islice((place for place in found if place.start not in self._over), MOST))

    def _begin(self, replacement: Replacement, snapshot: Snapshot) -> None:
        """It is made for the first time."""
        self._over.clear()
        self._offered.clear()
        self._scope, self._is_switch, self._is_use = None, False, False
        kind = kind_of(replacement, snapshot)
        if kind is None or replacement.calls is not None:
            return
        self._scope = kind.scope
        if replacement.is_of_name:
            self._rename(replacement, kind, snapshot)

    def _rename(self, replacement: Replacement, kind: Kind, snapshot: Snapshot) -> None:
        names = (replacement.old, replacement.new)
        if names in self._renamings and self._renamings[names] in (None, *kind.around):
            self._scope = self._renamings[names]
            return
        self._is_switch = stands_elsewhere(replacement, kind, self._scope, snapshot)
        found = places(replacement, kind, self._scope, snapshot)
        self._is_use = self._scope is not None and any(place.start < replacement.start for place in found)
        if not self._is_switch and not self._is_use:
            self._renamings[names] = self._scope
            for oldest in list(self._renamings)[:-REMEMBERED]:
                del self._renamings[oldest]

    def offer(self, suggestion_id: str, place: Place) -> None:
        """It is offered for a place; what was offered before and not touched may come again."""
        self._offered = {suggestion_id: (place.start, place.end)}

    def dismiss(self, suggestion_id: str) -> None:
        """The user does not want it there."""
        if suggestion_id in self._offered:
            self._over.append(self._offered.pop(suggestion_id)[0])


def _moved(offset: int, edit: Edit) -> int:
    """Where an offset lies after an edit; at its start if the edit takes it in."""
    if offset >= edit.start + len(edit.removed):
        return offset + len(edit.inserted) - len(edit.removed)
    return min(offset, edit.start)


def _moved_scope(scope: int | None, edit: Edit) -> int | None:
    return None if scope is None else _moved(scope, edit)


def _is_secret(replacement: Replacement, snapshot: Snapshot) -> bool:
    """Whether the line of the change looks like a secret, as it is or as it was."""
    return any(is_secret_line(line, snapshot.language_id) for line in replacement.lines(snapshot))
