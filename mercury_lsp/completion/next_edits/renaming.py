"""A renaming as a whole: how far it is, and the places that are left."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mercury_lsp.completion.next_edits.edit_sites import EditSite, find_sites
from mercury_lsp.completion.next_edits.replacement import Replacement
from mercury_lsp.completion.next_edits.syntax_kind import SyntaxKind
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import parser
from mercury_lsp.documents.parsing import parse
from mercury_lsp.documents.redaction import edit_shows_secret

MAX_RENAMED_PLACES = 2_000
"""Occurrences of a name in one document that are looked at to rename all."""

PARSE_SECONDS = 0.5
"""Budget of the parse that checks a renamed document."""


@dataclass(frozen=True, slots=True)
class Renaming:
    """A name that was changed in some places, and the places that still have the old one."""

    old: str
    new: str
    made: int
    left: tuple[EditSite, ...]

    @property
    def remaining(self) -> int:
        """Places that have the old name."""
        return len(self.left)

    @property
    def total(self) -> int:
        """All places."""
        return self.made + self.remaining


class RenamedDocument(NamedTuple):
    """The places of one version of a document in which a name is to be replaced, from top to bottom."""

    snapshot: Snapshot
    sites: tuple[EditSite, ...]
    kept: int
    """Places in lines that look like secrets, which stay."""


def renaming_of(replacement: Replacement, kind: SyntaxKind, scope: int | None, snapshot: Snapshot) -> Renaming:
    """The renaming of a plain name that a replacement is part of."""
    left = find_sites(replacement, kind, scope, snapshot, MAX_RENAMED_PLACES)
    unchanged = Replacement(replacement.new, replacement.new, replacement.start)
    made = 1 + sum(1 for _ in find_sites(unchanged, kind, scope, snapshot, MAX_RENAMED_PLACES))
    return Renaming(replacement.old, replacement.new, made, tuple(left))


def renamed(snapshot: Snapshot, sites: Sequence[EditSite]) -> RenamedDocument | None:
    """The document with all places renamed, without those in secret lines; None if that would break its syntax."""
    ordered = sorted(sites, key=lambda site: site.start)
    open_to_all = [each for each in ordered if not edit_shows_secret(snapshot, each.start, each.end, each.new)]
    found = RenamedDocument(snapshot, tuple(open_to_all), len(ordered) - len(open_to_all))
    return None if _breaks(found) else found


def _breaks(found: RenamedDocument) -> bool:
    """Whether a document that parses would not do so any more."""
    snapshot, source = found.snapshot, found.snapshot.source
    if snapshot.tree is None or snapshot.tree.root_node.has_error:
        return False
    for site in reversed(found.sites):
        source = source.replace(site.start, site.end, site.new)
    tree = parse(parser(snapshot.language_id), source, None, PARSE_SECONDS)
    return tree is not None and tree.root_node.has_error
