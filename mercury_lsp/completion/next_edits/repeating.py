"""What of one document may be repeated: its last change, and where that is not to be offered again."""

from collections.abc import Container, Sequence
from itertools import islice

from mercury_lsp.completion.next_edits.changes import ChangeLog
from mercury_lsp.completion.next_edits.places import EditSite, SyntaxKind, occurs_elsewhere, places, syntax_kind
from mercury_lsp.completion.next_edits.replacement import Replacement
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.documents.redaction import is_secret_line

MAX_OFFERED_SITES = 8
"""Places that are offered for one change before the next one is accepted."""

MIN_FINISHED_NAME_CHARS = 2
"""Characters of a new name at whose end the cursor stands, for its first one is hardly all of it."""

RENAMINGS_KEPT = 16
"""Renamings; one is looked at anew for every key of a name, whenever the editor asks."""


class RepeatableEdits:
    """Told every edit in order, at a cost that does not depend on the document's length."""

    def __init__(self) -> None:
        self._changes = ChangeLog()
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
        for edit in edits:
            self._changes.record(edit)
            for suggestion_id, (start, end) in list(self._offered.items()):
                if edit.start <= end and edit.start + len(edit.removed) >= start:
                    self.dismiss(suggestion_id)
            self._over = [_moved(offset, edit) for offset in self._over]
            self._scope = _moved_scope(self._scope, edit)
            self._renamings = {names: _moved_scope(scope, edit) for names, scope in self._renamings.items()}
            self._offered = {name: (_moved(a, edit), _moved(b, edit)) for name, (a, b) in self._offered.items()}

    def replacement(self, snapshot: Snapshot) -> Replacement | None:
        """What may be made elsewhere in the document as it is now; None when the last change was taken back.

        Of what is no name, or not yet, nothing is kept: it would be taken for one that means the same everywhere.
        """
        found = self._changes.replacement(snapshot)
        if found is None or _is_secret(found, snapshot):
            return None
        if self._repeated is not None and found.undoes(self._repeated):
            return None
        if (kind := syntax_kind(found, snapshot)) is not None:
            if not self._goes_on(found, kind):
                self._begin(found, kind, snapshot)
            self._repeated = found
        return found

    def is_unfinished(self, replacement: Replacement, cursor: int) -> bool:
        """Whether the cursor is in the new text, and that looks like one that is still being typed or erased."""
        if replacement.calls is not None or not replacement.start <= cursor <= replacement.end:
            return False
        new = replacement.new
        return not self._changes.is_growing or len(new) < MIN_FINISHED_NAME_CHARS or replacement.old.startswith(new)

    def places(self, replacement: Replacement, snapshot: Snapshot, invoked: bool) -> list[EditSite]:
        """Where it may be made, by rules alone, in the order in which it is to be offered; fewer to who did not ask."""
        if self._is_switch or (self._is_use and not invoked) or (kind := syntax_kind(replacement, snapshot)) is None:
            return []
        found = places(replacement, kind, self._scope, snapshot)
        return list(islice((place for place in found if place.start not in self._over), MAX_OFFERED_SITES))

    def _goes_on(self, replacement: Replacement, kind: SyntaxKind) -> bool:
        """Whether it is the same again, and where it means the same."""
        if self._repeated is None or not replacement.is_same(self._repeated):
            return False
        return self._scope is None or self._scope in kind.around

    def _begin(self, replacement: Replacement, kind: SyntaxKind, snapshot: Snapshot) -> None:
        """It is made for the first time."""
        self._over.clear()
        self._offered.clear()
        self._scope, self._is_switch, self._is_use = None, False, False
        if replacement.calls is not None:
            return
        self._scope = kind.scope
        if replacement.is_of_name:
            earlier = [each for each in self._changes.finished(snapshot) if each.is_same(replacement)]
            made = [each.start for each in (*earlier, replacement)]
            for each in (*earlier, replacement):
                if (kind_there := syntax_kind(each, snapshot)) is not None:
                    self._rename(each, kind_there, snapshot, made)

    def _rename(self, replacement: Replacement, kind: SyntaxKind, snapshot: Snapshot, made: Container[int]) -> None:
        """Learn what a name means that was put in place of another one, last of so many offsets."""
        names = (replacement.old, replacement.new)
        self._scope, self._is_switch, self._is_use = kind.scope, False, False
        if names in self._renamings and self._renamings[names] in (None, *kind.around):
            self._scope = self._renamings[names]
            return
        self._is_switch = occurs_elsewhere(replacement, kind, self._scope, snapshot, made)
        found = places(replacement, kind, self._scope, snapshot)
        self._is_use = self._scope is not None and any(place.start < replacement.start for place in found)
        if not self._is_switch and not self._is_use:
            self._renamings[names] = self._scope
            for oldest in list(self._renamings)[:-RENAMINGS_KEPT]:
                del self._renamings[oldest]

    def offer(self, suggestion_id: str, place: EditSite) -> None:
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
