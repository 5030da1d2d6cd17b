"""The state of next edits in one document: the last change, its scope, and the sites not to offer again."""

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace
from itertools import islice

from mercury_lsp.completion.next_edits.change import moved_offset
from mercury_lsp.completion.next_edits.change_log import ChangeLog
from mercury_lsp.completion.next_edits.edit_sites import EditSite, find_sites, occurs_elsewhere, syntax_kind
from mercury_lsp.completion.next_edits.highlights import Highlights
from mercury_lsp.completion.next_edits.renaming import Renaming, renaming_of
from mercury_lsp.completion.next_edits.replacement import Replacement
from mercury_lsp.completion.next_edits.syntax_kind import SyntaxKind, kind_at
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.documents.redaction import edit_shows_secret

MAX_OFFERED_SITES = 8
"""Sites offered for one change before the user accepts the next one."""

MIN_FINISHED_NAME_CHARS = 2
"""Shortest new name, in characters, that counts as finished with the cursor at its end."""

RENAMINGS_KEPT = 16
"""Number of renamings kept; one is recorded for every key of a name at which the editor asks."""


class RepeatableEdits:
    """What can be repeated in one document; an edit is recorded in time that does not depend on the text's length."""

    def __init__(self, is_declined: Callable[[str, EditSite], bool] = lambda uri, site: False) -> None:
        self._is_declined = is_declined
        """Whether the user did not want an edit of a document."""
        self._change_log = ChangeLog()
        self._repeated: Replacement | None = None
        """The replacement last requested; kept while the user makes the same change elsewhere."""
        self._scope: int | None = None
        """The offset of the definition to which the replacement is confined, if any."""
        self._is_switch = False
        """The new name was there before, so the user chose another name instead of renaming one."""
        self._is_use = False
        """The old name also occurs further up in its scope, so the user may have meant only this site."""
        self._renamings: dict[tuple[str, str], int | None] = {}
        """Scopes by old and new name, to recognise a renaming that the user continues by hand."""
        self._kinds: tuple[Snapshot | None, dict[Replacement, SyntaxKind | None]] = None, {}
        self._highlights = Highlights()

    def highlighted(self, snapshot: Snapshot, places: Iterable[tuple[int, int, bool]]) -> None:
        """Another server says where the name at the cursor stands (`Highlights.of`)."""
        self._highlights = self._highlights.replaced_by(Highlights.of(snapshot, places), snapshot)

    def record(self, edits: Sequence[Edit]) -> None:
        """Record edits, in order; every edit of the document must be recorded."""
        for edit in edits:
            self._change_log.record(edit)
            self._highlights = self._highlights.after(edit)
            self._scope = _moved_scope(self._scope, edit)
            self._renamings = {names: _moved_scope(scope, edit) for names, scope in self._renamings.items()}

    def _kind(self, replacement: Replacement, snapshot: Snapshot) -> SyntaxKind | None:
        """The syntactic kind of a replacement, looked up once in each version: a common name takes milliseconds."""
        if self._kinds[0] is not snapshot:
            self._kinds = snapshot, {}
        known = self._kinds[1]
        if replacement not in known:
            known[replacement] = syntax_kind(replacement, snapshot)
        return known[replacement]

    def replacement(self, snapshot: Snapshot) -> Replacement | None:
        """The replacement to offer elsewhere in this version; None if the user took the last change back.

        Nothing is recorded until the syntactic kind is known: the name would be taken to mean the same everywhere.
        """
        found = self._change_log.replacement(snapshot)
        if found is None or edit_shows_secret(snapshot, found.start, found.end, found.old):
            return None
        if self._repeated is not None and found.undoes(self._repeated):
            return None
        if (kind := self._kind(found, snapshot)) is not None:
            if not self._continues(found, kind):
                self._start_over(found, kind, snapshot)
            self._repeated = found
        elif self._highlights.know(found):
            self._repeated, self._is_switch = found, False
        return found

    def is_unfinished(self, replacement: Replacement, cursor: int) -> bool:
        """Whether the cursor is in the new text and the user seems to be still typing or erasing it."""
        if not replacement.start <= cursor <= replacement.end:
            return False
        new = replacement.new
        return not self._change_log.is_growing or len(new) < MIN_FINISHED_NAME_CHARS or replacement.old.startswith(new)

    def sites(self, replacement: Replacement, snapshot: Snapshot, invoked: bool) -> list[EditSite]:
        """The sites found by rules alone, in the order to offer them; fewer if the user did not ask."""
        if self._is_switch:
            return []
        if self._highlights.know(replacement):
            found: Iterable[EditSite] = self._highlights.renaming(replacement, snapshot).left
        else:
            is_single_use = self._is_use and not invoked and not self._same_before(replacement, snapshot)
            if is_single_use or (kind := self._kind(replacement, snapshot)) is None:
                return []
            found = find_sites(replacement, kind, self._scope, snapshot)
        return list(islice((site for site in found if not self._is_declined(snapshot.uri, site)), MAX_OFFERED_SITES))

    def renaming(self, replacement: Replacement, snapshot: Snapshot) -> Renaming | None:
        """The renaming that the replacement is part of, without places that the user dismissed; None if it is none."""
        kind = self._kind(replacement, snapshot)
        if self._is_switch:
            return None
        if self._highlights.know(replacement):
            found: Renaming | None = self._highlights.renaming(replacement, snapshot)
        else:
            found = renaming_of(replacement, kind, self._scope, snapshot) if kind else None
        if found is None:
            return None
        return replace(found, left=tuple(s for s in found.left if not self._is_declined(snapshot.uri, s)))

    @staticmethod
    def _is_binding(replacement: Replacement, snapshot: Snapshot) -> bool:
        """Whether the change renamed a name where it is declared or bound, as a parameter is; uses must follow."""
        kind = kind_at(snapshot, replacement.start)
        return kind is not None and (kind.is_defined or kind.is_bound)

    def must_go_on(self, replacement: Replacement, snapshot: Snapshot) -> bool:
        """Whether the name was renamed where it is bound, or in two places: to stop there would leave it undefined."""
        if self._is_switch:
            return False
        if self._highlights.know(replacement):
            return self._highlights.must_go_on(replacement, snapshot)
        if self._kind(replacement, snapshot) is None:
            return False
        return self._is_binding(replacement, snapshot) or self._same_before(replacement, snapshot)

    def _same_before(self, replacement: Replacement, snapshot: Snapshot) -> bool:
        """Whether an earlier change in the scope, which still stands, was the same."""
        earlier = (each for each in self._change_log.finished(snapshot) if each.is_same(replacement))
        kinds = (self._kind(each, snapshot) for each in earlier)
        scopes = (None if kind is None else (None, *kind.enclosing) for kind in kinds)
        return any(each is not None and self._scope in each for each in scopes)

    def _continues(self, replacement: Replacement, kind: SyntaxKind) -> bool:
        """Whether it repeats the last replacement where the name means the same."""
        if self._repeated is None or not replacement.is_same(self._repeated):
            return False
        return self._scope is None or self._scope in kind.enclosing

    def _start_over(self, replacement: Replacement, kind: SyntaxKind, snapshot: Snapshot) -> None:
        """Start over with a replacement made for the first time."""
        self._scope, self._is_switch, self._is_use = kind.scope, False, False
        earlier = [each for each in self._change_log.finished(snapshot) if each.is_same(replacement)]
        offsets = [each.start for each in (*earlier, replacement)]
        for each in (*earlier, replacement):
            if (kind_there := self._kind(each, snapshot)) is not None:
                self._rename(each, kind_there, snapshot, offsets)

    def _rename(self, replacement: Replacement, kind: SyntaxKind, snapshot: Snapshot, offsets: Container[int]) -> None:
        """Determine the scope of a renaming that the user has made at these offsets, last of them here."""
        names = (replacement.old, replacement.new)
        self._scope, self._is_switch, self._is_use = kind.scope, False, False
        if names in self._renamings and self._renamings[names] in (None, *kind.enclosing):
            self._scope = self._renamings[names]
            return
        found = list(find_sites(replacement, kind, self._scope, snapshot))
        self._is_switch = occurs_elsewhere(replacement, kind, self._scope, snapshot, offsets)
        is_inner = self._scope is not None or kind.is_outer
        self._is_use = is_inner and any(site.start < replacement.start for site in found)
        if not self._is_switch and not self._is_use:
            self._renamings[names] = self._scope
            for oldest in list(self._renamings)[:-RENAMINGS_KEPT]:
                del self._renamings[oldest]


def _moved_scope(scope: int | None, edit: Edit) -> int | None:
    return None if scope is None else moved_offset(scope, edit)
