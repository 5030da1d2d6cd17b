"""The state of next edits in one document: the last change, its scope, and the sites not to offer again."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

from mercury_lsp.completion.next_edits.change import moved_offset
from mercury_lsp.completion.next_edits.change_log import ChangeLog
from mercury_lsp.completion.next_edits.edit_sites import EditSite, find_sites, occurs_elsewhere, syntax_kind
from mercury_lsp.completion.next_edits.highlights import Highlights
from mercury_lsp.completion.next_edits.proposals import Proposal, by_line
from mercury_lsp.completion.next_edits.renaming import Renaming, renaming_of
from mercury_lsp.completion.next_edits.replacement import Replacement
from mercury_lsp.completion.next_edits.syntax_kind import SyntaxKind, kind_at
from mercury_lsp.completion.suggestions import RenamingProgress
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.documents.redaction import edit_shows_secret

MAX_OFFERED_SITES = 8
"""Sites offered for one change before the user accepts the next one."""

MIN_FINISHED_NAME_CHARS = 2
"""Shortest new name, in characters, that counts as finished with the cursor at its end."""


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
            self._scope = None if self._scope is None else moved_offset(self._scope, edit)

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

    def proposals(
        self, replacement: Replacement, snapshot: Snapshot, others: Iterable[Proposal], invoked: bool
    ) -> Iterator[Proposal]:
        """Other edits, then the renaming at its other places, those of one line at once; unasked only if it must go on.

        Others that rename the same come last, and not if another language server says where the name stands.
        """
        same, goes_on = [], self.must_go_on(replacement, snapshot)
        for each in others:
            is_same = (each.site.old, each.site.new) == (replacement.old, replacement.new)
            if goes_on and is_same and each.snapshot.uri == snapshot.uri:
                same.append(each)
            else:
                yield each
        if invoked or goes_on:
            for line in by_line(self.sites(replacement, snapshot), snapshot):
                yield Proposal(snapshot, tuple(line), partial(self._progress, replacement, snapshot, len(line)))
        yield from () if self._highlights.know(replacement) else same

    def _progress(self, replacement: Replacement, snapshot: Snapshot, offered: int) -> RenamingProgress | None:
        """How far the renaming is, at an offer of so many places."""
        renaming = self.renaming(replacement, snapshot)
        if renaming is None or not renaming.left:
            return None
        first, last = renaming.made + 1, renaming.made + offered
        return RenamingProgress(renaming.old, renaming.new, first, last, renaming.total, renaming.remaining)

    def sites(self, replacement: Replacement, snapshot: Snapshot) -> list[EditSite]:
        """The sites found by rules alone, in the order to offer them."""
        if self._is_switch:
            return []
        if self._highlights.know(replacement):
            found: Iterable[EditSite] = self._highlights.renaming(replacement, snapshot).left
        else:
            kind = self._kind(replacement, snapshot)
            found = find_sites(replacement, kind, self._scope, snapshot) if kind is not None else ()
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

    def must_go_on(self, replacement: Replacement, snapshot: Snapshot) -> bool:
        """Whether the name was renamed where it is bound, or in two places: to stop there would leave it undefined.

        From one use alone it may be another name.
        """
        if self._is_switch:
            return False
        if self._highlights.know(replacement):
            return self._highlights.must_go_on(replacement, snapshot)
        kind = kind_at(snapshot, replacement.start) if self._kind(replacement, snapshot) is not None else None
        is_binding = kind is not None and (kind.is_defined or kind.is_bound) and not self._is_use
        return is_binding or (kind is not None and self._same_before(replacement, snapshot))

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
        """Start over with a replacement, in the scope of the earlier ones that it continues, if there are any."""
        made = [each for each in self._change_log.finished(snapshot) if each.is_same(replacement)] + [replacement]
        offsets, is_under_way = [each.start for each in made], False
        for each in made:
            there = kind if each is replacement else self._kind(each, snapshot)
            if there is None or (is_under_way and self._scope in (None, *there.enclosing)):
                continue
            self._scope = there.scope
            self._is_switch = occurs_elsewhere(each, there, self._scope, snapshot, offsets)
            is_inner = self._scope is not None or there.is_outer
            found = find_sites(each, there, self._scope, snapshot)
            self._is_use = is_inner and any(site.start < each.start for site in found)
            is_under_way = not self._is_switch and not self._is_use
