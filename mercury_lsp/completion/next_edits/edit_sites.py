"""Finds edit sites: where else the old text of a replacement occurs with the same syntactic kind."""

import re
from bisect import bisect_right
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from mercury_lsp.completion.next_edits.replacement import Replacement
from mercury_lsp.completion.next_edits.syntax_kind import SyntaxKind, kind_at
from mercury_lsp.context.scope import path_to
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import language

SEARCH_REACH_CHARS = 100_000
"""Characters on either side of the change that are searched."""

MAX_NEAR = 20
"""Places on either side of a change that are looked at, at some 0.1 milliseconds each, in every open document."""

MAX_CLASSIFIED_OCCURRENCES = 200
"""Occurrences whose syntactic kind is determined, at some 20 microseconds each."""


@dataclass(frozen=True, slots=True)
class EditSite:
    """Text at an offset, and its replacement."""

    start: int
    old: str
    new: str

    @property
    def end(self) -> int:
        """Where the old text ends."""
        return self.start + len(self.old)


def text_around(at: int, snapshot: Snapshot) -> tuple[int, str]:
    """The whole lines that are searched around an offset, and where they begin."""
    source = snapshot.source
    first, _ = source.line_bounds(at - SEARCH_REACH_CHARS)
    return first, source.slice(first, source.offset_at(source.line_of(at + SEARCH_REACH_CHARS) + 1, 0))


def near(starts: Sequence[int], at: int) -> slice:
    """The nearest places on either side of an offset; their starts come in order."""
    middle = bisect_right(starts, at)
    return slice(max(0, middle - MAX_NEAR), middle + MAX_NEAR)


def below_first(sites: Sequence[EditSite], at: int) -> list[EditSite]:
    """The sites below an offset from the top down, then the others from the bottom up; they come in order."""
    below = [site for site in sites if site.start > at]
    return below + [site for site in reversed(sites) if site.start <= at]


def joined(sites: Sequence[EditSite], snapshot: Snapshot) -> EditSite:
    """Sites from left to right as one."""
    old, new, at = "", "", sites[0].start
    for site in sites:
        between = snapshot.slice(at, site.start)
        old, new, at = old + between + site.old, new + between + site.new, site.end
    return EditSite(sites[0].start, old, new)


def syntax_kind(replacement: Replacement, snapshot: Snapshot) -> SyntaxKind | None:
    """The kind of the changed name; None if it is none, or the document is not parsed (yet)."""
    if snapshot.tree is None or not snapshot.is_parsed:
        return None
    kind = kind_at(snapshot, replacement.start)
    return None if kind is None or kind.is_shorthand else _as_declared(kind, replacement, snapshot)


def _as_declared(kind: SyntaxKind, replacement: Replacement, snapshot: Snapshot) -> SyntaxKind:
    """The kind of a use as its declaration in the document says: a name may be bound further out."""
    if kind.is_bound:
        return kind
    sites = _occurrences(replacement, snapshot, _reach(replacement, None, snapshot))
    kinds = (kind_at(snapshot, site.start) for site in islice(sites, MAX_CLASSIFIED_OCCURRENCES))
    others = [each for each in kinds if each is not None]
    for depth in range(len(kind.enclosing), 0, -1):
        if any(each.is_bound and each.enclosing == kind.enclosing[:depth] for each in others):
            return replace(kind, enclosing=kind.enclosing[:depth], is_outer=depth < len(kind.enclosing))
    if any((each.is_bound or each.is_defined) and not each.enclosing for each in others):
        return replace(kind, enclosing=(), is_outer=bool(kind.enclosing))
    return kind


def find_sites(
    replacement: Replacement,
    kind: SyntaxKind,
    scope: int | None,
    snapshot: Snapshot,
    most: int = MAX_CLASSIFIED_OCCURRENCES,
) -> Iterator[EditSite]:
    """Occurrences of the old name with this kind and scope, in whole words.

    Those after the change come first, then those before it, each nearest first. At most the first `most` occurrences
    are looked at.
    """
    sites = islice(_occurrences(replacement, snapshot, _reach(replacement, scope, snapshot)), most)
    kinds = ((site, kind_at(snapshot, site.start)) for site in sites)
    found = [(site, kind) for site, kind in kinds if kind is not None]
    shadowing = {each.enclosing[-1] for _, each in found if each.is_bound and each.enclosing}
    for site, other in found:
        if other.may_match(scope) and not _is_shadowed(other, scope, shadowing):
            yield replace(site, new=f"{site.old}: {site.new}") if other.is_shorthand else site


def _is_shadowed(other: SyntaxKind, scope: int | None, shadowing: Container[int]) -> bool:
    """Whether a function between the name's scope and this use of it binds the name again."""
    inner = other.enclosing[other.enclosing.index(scope) + 1 :] if scope in other.enclosing else other.enclosing
    return scope not in inner and any(each in shadowing for each in inner)


def _reach(replacement: Replacement, scope: int | None, snapshot: Snapshot) -> tuple[int, int]:
    """Start and end of the text that is searched: the definition at `scope`, or the text near the change."""
    if scope is not None and snapshot.tree is not None:
        source, rules = snapshot.source, language(snapshot.language_id)
        byte = source.byte_of(scope)
        for node in path_to(snapshot.tree, byte + 1):
            if node.start_byte == byte and node.type in rules.definitions:
                return scope, source.offset_of_byte(node.end_byte)
    return max(0, replacement.start - SEARCH_REACH_CHARS), replacement.end + SEARCH_REACH_CHARS


def occurs_elsewhere(
    replacement: Replacement, kind: SyntaxKind, scope: int | None, snapshot: Snapshot, except_at: Container[int]
) -> bool:
    """Whether the new text already occurs in the scope: then the user chose another name instead of renaming one.

    `except_at`: offsets where the user has just put it.
    """
    unchanged = Replacement(replacement.new, replacement.new, replacement.start)
    return any(site.start not in except_at for site in find_sites(unchanged, kind, scope, snapshot))


def _occurrences(replacement: Replacement, snapshot: Snapshot, reach: tuple[int, int]) -> Iterator[EditSite]:
    """Occurrences of the old name within reach, those after the change first, each nearest first."""
    pattern = re.compile(rf"(?<!\w){re.escape(replacement.old)}(?!\w)")
    first, last = reach
    after = (replacement.end + found.start() for found in pattern.finditer(snapshot.slice(replacement.end, last)))
    before = [first + found.start() for found in pattern.finditer(snapshot.slice(first, replacement.start))]
    for at in chain(after, reversed(before)):
        yield EditSite(at, replacement.old, replacement.new)
