"""Where a name stands, as another language server says: it knows scopes and types, our rules only their syntax."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from mercury_lsp.completion.next_edits.change import moved_offset
from mercury_lsp.completion.next_edits.edit_sites import EditSite, below_first
from mercury_lsp.completion.next_edits.renaming import Renaming
from mercury_lsp.completion.next_edits.replacement import Replacement
from mercury_lsp.documents.document import Edit, Snapshot


@dataclass(frozen=True, slots=True)
class Highlights:
    """The places of a name in one document, by offsets that edits move."""

    name: str = ""
    places: tuple[int, ...] = ()
    binding: int | None = None
    """Index of the first place where the name is written."""

    @classmethod
    def of(cls, snapshot: Snapshot, places: Iterable[tuple[int, int, bool]]) -> "Highlights":
        """Those of a version: start and end of each place, and whether it is written there; none if names differ."""
        found = sorted(set(places))
        names = {snapshot.slice(start, end) for start, end, _ in found}
        if len(names) != 1:
            return cls()
        written = (index for index, (_, _, is_written) in enumerate(found) if is_written)
        return cls(names.pop(), tuple(start for start, _, _ in found), next(written, None))

    def replaced_by(self, other: "Highlights", snapshot: Snapshot) -> "Highlights":
        """The newer ones, if there are any; but of a renaming under way only the older ones know all places."""
        stands = [_stands(self.name, at, snapshot) for at in self.places]
        is_under_way = any(stands) and not all(stands) and not {*self.places}.isdisjoint(other.places)
        return other if other.places and not is_under_way else self

    def after(self, edit: Edit) -> "Highlights":
        """The places after an edit; one that begins at a place leaves it where it is."""
        if not self.places or edit.start > self.places[-1]:
            return self
        return replace(self, places=tuple(at if edit.start >= at else moved_offset(at, edit) for at in self.places))

    def know(self, replacement: Replacement) -> bool:
        """Whether the name was replaced in one of these places."""
        return replacement.old == self.name and replacement.start in self.places

    def renaming(self, replacement: Replacement, snapshot: Snapshot) -> Renaming:
        """The renaming that a replacement of the name is part of; places below it come first."""
        sites = [EditSite(at, replacement.old, replacement.new) for at in self.places]
        left = [each for each in sites if _stands(each.old, each.start, snapshot)]
        made = sum(_stands(each.new, each.start, snapshot) for each in sites)
        return Renaming(replacement.old, replacement.new, made, tuple(below_first(left, replacement.start)))

    def must_go_on(self, replacement: Replacement, snapshot: Snapshot) -> bool:
        """Whether the name was replaced where it is bound, or in two places."""
        is_bound_here = self.binding is not None and self.places[self.binding] == replacement.start
        return is_bound_here or self.renaming(replacement, snapshot).made > 1


def _stands(name: str, at: int, snapshot: Snapshot) -> bool:
    """Whether the whole name stands at an offset."""
    return re.match(rf"{re.escape(name)}(?!\w)", snapshot.slice(at, at + len(name) + 1)) is not None
