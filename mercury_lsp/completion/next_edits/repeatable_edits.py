"""The state of next edits in one document: the last change, renamings begun before it, and what their names mean."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from mercury_lsp.completion.next_edits.change import moved_offset
from mercury_lsp.completion.next_edits.change_log import FINISHED_CHANGES_KEPT, ChangeLog
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

MAX_BEGUN = FINISHED_CHANGES_KEPT + 1
"""Replacements kept, with the last one."""

MIN_FINISHED_NAME_CHARS = 2
"""Shortest new name, in characters, that counts as finished with the cursor at its end."""


@dataclass(slots=True)
class _Begun:
    """A name that the user has begun to replace: what it means is settled then, whatever they do later."""

    names: tuple[str, str]
    scope: int | None = None
    """The offset of the definition to which the replacement is confined, if any."""
    is_switch: bool = False
    """The new name was there before, so the user chose another name instead of renaming one."""
    is_use: bool = False
    """The old name also occurs further up in its scope, so the user may have meant only this site."""
    highlights: Highlights = field(default_factory=Highlights)
    """Where another language server saw the name, if one did."""

    is_over: bool = False
    """No place was left, or it need not go on, when it was last asked for after another change."""

    def record(self, edit: Edit) -> None:
        """Move with an edit of the document."""
        self.scope = None if self.scope is None else moved_offset(self.scope, edit)
        self.highlights = self.highlights.after(edit)


@dataclass(frozen=True, slots=True)
class _Known:
    """What was looked up in one version of the document."""

    snapshot: Snapshot | None = None
    kinds: dict[Replacement, SyntaxKind | None] = field(default_factory=dict)
    sites: dict[tuple[Replacement, int | None], list[EditSite]] = field(default_factory=dict)


class RepeatableEdits:
    """What can be repeated in one document; an edit is recorded in time that does not depend on the text's length."""

    def __init__(self, is_declined: Callable[[str, EditSite], bool] = lambda uri, site: False) -> None:
        self._is_declined = is_declined
        """Whether the user did not want an edit of a document."""
        self._change_log = ChangeLog()
        self._begun: list[_Begun] = []
        """The replacement last asked for, kept while the user makes it elsewhere, after the renamings before it."""
        self._last: Replacement | None = None
        """The last change, when it was last asked for."""
        self._known = _Known()
        self._highlights = Highlights()

    def highlighted(self, snapshot: Snapshot, places: Iterable[tuple[int, int, bool]]) -> None:
        """Another server says where the name at the cursor stands (`Highlights.of`)."""
        self._highlights = self._highlights.replaced_by(Highlights.of(snapshot, places), snapshot)

    def record(self, edits: Sequence[Edit]) -> None:
        """Record edits, in order; every edit of the document must be recorded."""
        for edit in edits:
            self._change_log.record(edit)
            self._highlights = self._highlights.after(edit)
            for begun in self._begun:
                begun.record(edit)

    def _kind(self, replacement: Replacement, snapshot: Snapshot) -> SyntaxKind | None:
        """The syntactic kind of a replacement, looked up once in each version: a common name takes milliseconds."""
        known = self._known_of(snapshot).kinds
        if replacement not in known:
            known[replacement] = syntax_kind(replacement, snapshot)
        return known[replacement]

    def _found(self, replacement: Replacement, scope: int | None, snapshot: Snapshot) -> list[EditSite]:
        """Where the syntax says that the old name means the same; looked up once in each version, too."""
        known, kind = self._known_of(snapshot).sites, self._kind(replacement, snapshot)
        if (replacement, scope) not in known:
            found = find_sites(replacement, kind, scope, snapshot) if kind is not None else ()
            known[replacement, scope] = [*found]
        return known[replacement, scope]

    def _known_of(self, snapshot: Snapshot) -> _Known:
        if self._known.snapshot is not snapshot:
            self._known = _Known(snapshot)
        return self._known

    def replacement(self, snapshot: Snapshot) -> Replacement | None:
        """The replacement to offer elsewhere in this version: the last change, or an earlier renaming to be finished.

        None if there is none, or if the user took the last change back.
        """
        found = self._change_log.replacement(snapshot)
        if found is not None and edit_shows_secret(snapshot, found.start, found.end, found.old):
            found = None
        self._last = found
        if found is not None and self._begun and (found.new, found.old) == self._begun[-1].names:
            return None
        for each in self._change_log.finished(snapshot):
            if self._of(each) is None:
                self._begin(each, snapshot)
        if found is not None:
            self._begin(found, snapshot)
        if found is not None and self._is_left(found, snapshot):
            return found
        return self._unfinished(found, snapshot) or found

    def _begin(self, found: Replacement, snapshot: Snapshot) -> None:
        """Settle what the last change means, unless it goes on with one.

        Nothing is settled until the syntactic kind is known: the name would be taken to mean the same everywhere.
        """
        kind, names, is_highlighted = self._kind(found, snapshot), (found.old, found.new), self._highlights.know(found)
        if kind is not None:
            begun = self._continued(found, kind) or self._started(found, kind, snapshot)
        elif is_highlighted:
            begun = self._of(found) or _Begun(names)
            begun.is_switch = False
        else:
            return
        if is_highlighted:
            begun.highlights = self._highlights
        begun.is_over = False
        self._begun = [*(each for each in self._begun if each is not begun), begun][-MAX_BEGUN:]

    def _unfinished(self, last: Replacement | None, snapshot: Snapshot) -> Replacement | None:
        """The latest renaming before the last change that has places left, unless that took one back."""
        if not snapshot.is_parsed:
            return None
        undone = self._change_log.taken_back(snapshot)
        current = None if last is None else self._of(last, snapshot)
        earlier = [*self._change_log.finished(snapshot)][::-1]
        for begun in reversed(self._begun):
            if begun is current or begun.is_over or begun.names[0] == undone:
                continue
            made = (each for each in earlier if (each.old, each.new) == begun.names)
            found = next((each for each in made if self._of(each, snapshot) is begun), None)
            is_back = any((each.new, each.old) == begun.names for each in earlier)
            if found is not None and not is_back and self._is_left(found, snapshot):
                return found
            begun.is_over = True
        return None

    def _is_left(self, replacement: Replacement, snapshot: Snapshot) -> bool:
        """Whether it is a renaming that must go on somewhere."""
        return self.must_go_on(replacement, snapshot) and bool(self.sites(replacement, snapshot))

    def _of(self, replacement: Replacement, snapshot: Snapshot | None = None) -> _Begun | None:
        """What was settled about a replacement; in a snapshot, where the name means the same."""
        names = replacement.old, replacement.new
        for begun in reversed(self._begun):
            if begun.names == names and (snapshot is None or self._is_meant(begun, replacement, snapshot)):
                return begun
        return None

    def _is_meant(self, begun: _Begun, replacement: Replacement, snapshot: Snapshot) -> bool:
        if begun.highlights.know(replacement):
            return True
        kind = self._kind(replacement, snapshot)
        return kind is not None and begun.scope in (None, *kind.enclosing)

    def is_unfinished(self, cursor: int) -> bool:
        """Whether the cursor is in the new text of the last change and the user seems to type or erase it still."""
        last = self._last
        if last is None or not last.start <= cursor <= last.end:
            return False
        return (
            not self._change_log.is_growing or len(last.new) < MIN_FINISHED_NAME_CHARS or last.old.startswith(last.new)
        )

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
        yield from () if self._highlights_of(replacement) else same

    def _progress(self, replacement: Replacement, snapshot: Snapshot, offered: int) -> RenamingProgress | None:
        """How far the renaming is, at an offer of so many places."""
        renaming = self.renaming(replacement, snapshot)
        if renaming is None or not renaming.left:
            return None
        first, last = renaming.made + 1, renaming.made + offered
        return RenamingProgress(renaming.old, renaming.new, first, last, renaming.total, renaming.remaining)

    def sites(self, replacement: Replacement, snapshot: Snapshot) -> list[EditSite]:
        """The sites found by rules alone, in the order to offer them."""
        begun = self._of(replacement, snapshot)
        if begun is None or begun.is_switch:
            return []
        if (highlights := self._highlights_of(replacement)) is not None:
            found: Iterable[EditSite] = highlights.renaming(replacement, snapshot).left
        else:
            found = self._found(replacement, begun.scope, snapshot)
        return list(islice((site for site in found if not self._is_declined(snapshot.uri, site)), MAX_OFFERED_SITES))

    def renaming(self, replacement: Replacement, snapshot: Snapshot) -> Renaming | None:
        """The renaming that the replacement is part of, without places that the user dismissed; None if it is none."""
        begun, kind = self._of(replacement, snapshot), self._kind(replacement, snapshot)
        if begun is None or begun.is_switch:
            return None
        if (highlights := self._highlights_of(replacement)) is not None:
            found = highlights.renaming(replacement, snapshot)
        elif kind is not None:
            found = renaming_of(replacement, kind, begun.scope, snapshot)
        else:
            return None
        return replace(found, left=tuple(s for s in found.left if not self._is_declined(snapshot.uri, s)))

    def must_go_on(self, replacement: Replacement, snapshot: Snapshot) -> bool:
        """Whether the name was renamed where it is bound, or in two places: to stop there would leave it undefined.

        From one use alone it may be another name.
        """
        begun = self._of(replacement, snapshot)
        if begun is None or begun.is_switch:
            return False
        if (highlights := self._highlights_of(replacement)) is not None:
            return highlights.must_go_on(replacement, snapshot)
        if self._kind(replacement, snapshot) is None:
            return False
        same = [each for each in self._made(replacement, snapshot) if self._is_meant(begun, each, snapshot)]
        return len(same) > 1 or any(self._is_bound(each, snapshot) for each in same if not begun.is_use)

    def _made(self, replacement: Replacement, snapshot: Snapshot) -> list[Replacement]:
        """Where the user made the same replacement, oldest first."""
        made = [*self._change_log.finished(snapshot), *([] if self._last is None else [self._last])]
        return [each for each in made if each.is_same(replacement)]

    def _is_bound(self, replacement: Replacement, snapshot: Snapshot) -> bool:
        kind = kind_at(snapshot, replacement.start)
        return kind is not None and (kind.is_defined or kind.is_bound)

    def _highlights_of(self, replacement: Replacement) -> Highlights | None:
        """Those of another language server that know a replacement's name: the newest, or those that it began with."""
        begun = self._of(replacement)
        known = [self._highlights, *([] if begun is None else [begun.highlights])]
        return next((each for each in known if each.know(replacement)), None)

    def _continued(self, replacement: Replacement, kind: SyntaxKind) -> _Begun | None:
        """The replacement last asked for, if this one repeats it where the name means the same."""
        begun = self._begun[-1] if self._begun else None
        is_same = begun is not None and begun.names == (replacement.old, replacement.new)
        return begun if begun is not None and is_same and begun.scope in (None, *kind.enclosing) else None

    def _started(self, replacement: Replacement, kind: SyntaxKind, snapshot: Snapshot) -> _Begun:
        """A new one, in the scope of the earlier ones that it continues, if there are any."""
        made = [*(each for each in self._made(replacement, snapshot) if each != replacement), replacement]
        offsets, found = [each.start for each in made], _Begun((replacement.old, replacement.new))
        is_under_way = False
        for each in made:
            there = kind if each is replacement else self._kind(each, snapshot)
            if there is None or (is_under_way and found.scope in (None, *there.enclosing)):
                continue
            found.scope = there.scope
            found.is_switch = occurs_elsewhere(each, there, found.scope, snapshot, offsets)
            is_inner = found.scope is not None or there.is_outer
            sites = find_sites(each, there, found.scope, snapshot)
            found.is_use = is_inner and any(site.start < each.start for site in sites)
            is_under_way = not found.is_switch and not found.is_use
        return found
