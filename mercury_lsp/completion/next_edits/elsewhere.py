"""Places of a name in other documents, which have it by an import, an included header or a common package."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from mercury_lsp.completion.next_edits.edit_sites import MAX_CLASSIFIED_OCCURRENCES, EditSite, sites_of_kind
from mercury_lsp.completion.next_edits.syntax_kind import SyntaxKind, kind_at
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import C_FAMILY, SCRIPT_FAMILY, language, share_names

_FOLDER_NAMES = ("index", "__init__", "init", "mod", "lib", "main")
"""Names of files that are imported by the name of their folder."""

_BY_FOLDER = ("go", "java")
"""Languages in which files of one folder see each other's names."""


_PLAIN_NAME = SyntaxKind("name", "", (), is_type=False, is_defined=False)

_REQUIRED = re.compile(r"^.*\brequire\b.*$", re.M)
"""A line that imports by a call, in Lua and JavaScript."""

_ALIAS = re.compile(r"\bas\s+(\w+)|(\w+)\s*=\s*require\b")


def sites_elsewhere(
    names: tuple[str, str], kind: SyntaxKind, path: str, language_id: str, other: Snapshot, other_path: str
) -> list[EditSite]:
    """The places in another document that mean the name of the document at `path`; `names` are the old and the new one.

    Plain names that it imports, members of the module, and fields of structures that it knows.
    """
    old, new = names
    if other.tree is None or not other.is_parsed or not share_names(language_id, other.language_id):
        return []
    origin = PurePosixPath(path)
    by_folder = origin.stem in _FOLDER_NAMES or language_id == "go"
    module = origin.parent.name if by_folder else origin.stem
    imports = [text for text in _imports(other) if _has_word(text, module)]
    is_near = language_id in _BY_FOLDER and PurePosixPath(other_path).parent == origin.parent
    is_near = is_near or (language_id in C_FAMILY and PurePosixPath(other_path).stem == origin.stem)
    if not (imports or is_near):
        return []
    found = list(_uses(old, new, other))
    if kind.is_field:
        return _fields(found, kind, other)
    if language_id not in C_FAMILY and any(each.is_defined and not each.enclosing for _, each in found):
        return []
    owners = {module, *(alias for text in imports for alias in _aliases(text))}
    by_name = is_near or language_id in C_FAMILY or any(_has_word(text, old) for text in imports)
    plain = list(sites_of_kind(found, _PLAIN_NAME, None, other)) if by_name else []
    members = [site for site, each in found if each.role == "member" and each.owner in owners and imports]
    imported = [site for site, _ in found if by_name and _is_in_import(other, site)]
    return sorted({site.start: site for site in (*plain, *members, *imported)}.values(), key=lambda site: site.start)


def _fields(found: Sequence[tuple[EditSite, SyntaxKind]], kind: SyntaxKind, other: Snapshot) -> list[EditSite]:
    """The uses of a field; none if a structure of the document has one of that name itself."""
    if any(each.is_field for _, each in found):
        return []
    return list(sites_of_kind(found, kind, None, other))


def _uses(old: str, new: str, other: Snapshot) -> Iterator[tuple[EditSite, SyntaxKind]]:
    pattern = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)")
    for number, found in enumerate(pattern.finditer(other.text)):
        if number >= MAX_CLASSIFIED_OCCURRENCES:
            return
        if (kind := kind_at(other, found.start())) is not None:
            yield EditSite(found.start(), old, new), kind


def _imports(snapshot: Snapshot) -> Iterator[str]:
    assert snapshot.tree is not None
    for node in snapshot.tree.root_node.named_children:
        if node.type in language(snapshot.language_id).imports:
            yield (node.text or b"").decode("utf-8", "replace")
    if snapshot.language_id in (*SCRIPT_FAMILY, "lua"):
        yield from _REQUIRED.findall(snapshot.text)


def _aliases(text: str) -> list[str]:
    """Names under which an import makes the module known."""
    return [first or second for first, second in _ALIAS.findall(text)]


def _is_in_import(snapshot: Snapshot, site: EditSite) -> bool:
    line, _ = snapshot.line_at(site.start)
    return line.lstrip().startswith(language(snapshot.language_id).import_words or ("\0",))


def _has_word(text: str, word: str) -> bool:
    return bool(word) and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None
