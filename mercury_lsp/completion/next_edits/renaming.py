"""A renaming as a whole: how far it is, and the places that are left, also in other open documents."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from mercury_lsp.completion.next_edits.edit_sites import MAX_CLASSIFIED_OCCURRENCES, EditSite, find_sites
from mercury_lsp.completion.next_edits.replacement import Replacement
from mercury_lsp.completion.next_edits.syntax_kind import SyntaxKind, kind_at
from mercury_lsp.documents.document import Snapshot, parse
from mercury_lsp.documents.languages import language, parser
from mercury_lsp.documents.redaction import is_secret_line

MAX_RENAMED_PLACES = 2_000
"""Occurrences of a name in one document that are looked at to rename all."""

_FOLDER_NAMES = ("index", "__init__", "mod", "lib", "main")
"""Names of files that are imported by the name of their folder."""

_BY_FOLDER = ("go", "java")
"""Languages in which files of one folder see each other's names."""

_HEADERS = ("c", "cpp")
_SCRIPTS = ("javascript", "javascriptreact", "typescript", "typescriptreact")

PARSE_SECONDS = 0.5
"""Budget of the parse that checks a renamed document."""


@dataclass(frozen=True, slots=True)
class Renaming:
    """A name that was changed in some places, and the places of the document that still have the old one."""

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


def renaming_of(replacement: Replacement, kind: SyntaxKind, scope: int | None, snapshot: Snapshot) -> Renaming | None:
    """The renaming that a replacement is part of; None unless rules know all places with that name.

    They do for plain names, and for members of the class and of structures, but not for any object's attribute.
    """
    is_known = scope is not None or kind.is_field or kind.role == "name"
    if not replacement.is_of_name or kind.role == "key" or not is_known:
        return None
    left = find_sites(replacement, kind, scope, snapshot, MAX_RENAMED_PLACES)
    unchanged = Replacement(replacement.new, replacement.new, replacement.start)
    made = 1 + sum(1 for _ in find_sites(unchanged, kind, scope, snapshot, MAX_RENAMED_PLACES))
    return Renaming(replacement.old, replacement.new, made, tuple(left))


def renamed(snapshot: Snapshot, sites: Sequence[EditSite]) -> RenamedDocument | None:
    """The document with all places renamed, without those in secret lines; None if that would break its syntax."""
    ordered = sorted(sites, key=lambda site: site.start)
    open_to_all = [site for site in ordered if not _is_secret(site, snapshot)]
    found = RenamedDocument(snapshot, tuple(open_to_all), len(ordered) - len(open_to_all))
    return None if _breaks(found) else found


def sites_elsewhere(
    renaming: Renaming, path: str, language_id: str, other: Snapshot, other_path: str
) -> list[EditSite]:
    """The places in another document that mean the name of the document at `path`, because they import it."""
    if other.tree is None or not other.is_parsed or not _is_same_language(language_id, other.language_id):
        return []
    origin = PurePosixPath(path)
    module = origin.parent.name if origin.stem in _FOLDER_NAMES else origin.stem
    imports = list(_imports(other))
    is_imported = any(_has_word(text, module) for text in imports)
    by_name = any(_has_word(text, module) and _has_word(text, renaming.old) for text in imports)
    by_name = by_name or (language_id in _HEADERS and is_imported)
    by_name = by_name or (language_id in _BY_FOLDER and PurePosixPath(other_path).parent == origin.parent)
    if not (by_name or is_imported):
        return []
    found = list(_uses(renaming, other))
    if language_id not in _HEADERS and any(kind.is_defined and not kind.enclosing for _, kind in found):
        return []
    return [
        site
        for site, kind in found
        if (by_name and (kind.role == "name" or _is_in_import(other, site))) or (is_imported and kind.owner == module)
    ]


def _uses(renaming: Renaming, other: Snapshot) -> Iterator[tuple[EditSite, SyntaxKind]]:
    pattern = re.compile(rf"(?<!\w){re.escape(renaming.old)}(?!\w)")
    for number, found in enumerate(pattern.finditer(other.text)):
        if number >= MAX_CLASSIFIED_OCCURRENCES:
            return
        if (kind := kind_at(other, found.start())) is not None:
            yield EditSite(found.start(), renaming.old, renaming.new), kind


def _imports(snapshot: Snapshot) -> Iterator[str]:
    assert snapshot.tree is not None
    for node in snapshot.tree.root_node.named_children:
        if node.type in language(snapshot.language_id).imports:
            yield (node.text or b"").decode("utf-8", "replace")


def _is_in_import(snapshot: Snapshot, site: EditSite) -> bool:
    line, _ = snapshot.line_at(site.start)
    return line.lstrip().startswith(language(snapshot.language_id).import_words or ("\0",))


def _is_same_language(one: str, other: str) -> bool:
    return any(one in family and other in family for family in ((one,), _HEADERS, _SCRIPTS))


def _has_word(text: str, word: str) -> bool:
    return bool(word) and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _is_secret(site: EditSite, snapshot: Snapshot) -> bool:
    line, start = snapshot.line_at(site.start)
    after = line[: site.start - start] + site.new + line[site.end - start :]
    return any(is_secret_line(each, snapshot.language_id) for each in (line, after))


def _breaks(found: RenamedDocument) -> bool:
    """Whether a document that parses would not do so any more."""
    snapshot, source = found.snapshot, found.snapshot.source
    if snapshot.tree is None or snapshot.tree.root_node.has_error:
        return False
    for site in reversed(found.sites):
        source = source.replace(site.start, site.end, site.new)
    tree = parse(parser(snapshot.language_id), source, None, PARSE_SECONDS)
    return tree is not None and tree.root_node.has_error
