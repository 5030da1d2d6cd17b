"""Finds edit sites: where else the old text of a replacement occurs with the same syntactic kind."""

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from tree_sitter import Node

from mercury_lsp.completion.next_edits.calls import calls, with_same_change
from mercury_lsp.completion.next_edits.replacement import MAX_REPLACEMENT_CHARS, Replacement
from mercury_lsp.context.scope import path_to
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import Language, language

SEARCH_REACH_CHARS = 100_000
"""Characters on either side of the change that are searched."""

MAX_CLASSIFIED_OCCURRENCES = 200
"""Occurrences whose syntactic kind is determined, at some 20 microseconds each."""

OWNER_REACH_CHARS = 60
"""Characters before a name that are searched for its owner."""

_OWNER = re.compile(r"(\w*)[)\]?]*\s*(?:\.|->|::)\s*\Z")
_NAME = re.compile(r"[^\W\d]\w*")
_ENDS_IN_WORD = re.compile(r"\w\Z")
_FUNCTION = re.compile("func|method|arrow|closure|constructor|lambda")
_CLASS = re.compile("class|impl|interface|trait")


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


@dataclass(frozen=True, slots=True)
class SyntaxKind:
    """What the syntax says about a name; names of different kinds denote different things."""

    role: str
    owner: str
    """The word before the dot, for members; otherwise empty."""
    enclosing: tuple[int, ...]
    """Offsets of the enclosing definitions, outermost first, outside of which the name may mean something else."""
    is_type: bool
    is_defined: bool
    """It is the name in the header of a function or class, which merely looks like a call."""

    @property
    def scope(self) -> int | None:
        """The offset of the innermost one; None for names with the same meaning in the whole file, such as types."""
        return self.enclosing[-1] if self.enclosing and not self.is_type else None

    def may_match(self, other: "SyntaxKind", scope: int | None) -> bool:
        """Whether this name may denote the same thing as another one, which has that scope."""
        return (self.role, self.owner) == (other.role, other.owner) and (scope is None or scope in self.enclosing)


def syntax_kind(replacement: Replacement, snapshot: Snapshot) -> SyntaxKind | None:
    """The kind of the changed name or call; None if it is neither, or the document is not parsed (yet)."""
    if snapshot.tree is None or not snapshot.is_parsed:
        return None
    kind = _kind_at(snapshot, _name_in(replacement.new, replacement.start))
    return None if kind is not None and kind.is_defined and replacement.calls else kind


def find_sites(replacement: Replacement, kind: SyntaxKind, scope: int | None, snapshot: Snapshot) -> Iterator[EditSite]:
    """Occurrences of the old text as a name of this kind and scope, in whole words, or calls of its name.

    Those after the change come first, then those before it, each nearest first; an occurrence that is already part of
    the new text is left out.
    """
    for site in islice(_occurrences(replacement, snapshot), MAX_CLASSIFIED_OCCURRENCES):
        other = _kind_at(snapshot, _name_in(site.old, site.start))
        if other is None or (other.is_defined and replacement.calls):
            continue
        if other.may_match(kind, scope):
            yield site


def occurs_elsewhere(
    replacement: Replacement, kind: SyntaxKind, scope: int | None, snapshot: Snapshot, except_at: Container[int]
) -> bool:
    """Whether the new text already occurs in the scope: then the user chose another name instead of renaming one.

    `except_at`: offsets where the user has just put it.
    """
    unchanged = Replacement(replacement.new, replacement.new, replacement.start)
    return any(site.start not in except_at for site in find_sites(unchanged, kind, scope, snapshot))


def _kind_at(snapshot: Snapshot, offset: int) -> SyntaxKind | None:
    """The kind of the name that starts at offset."""
    assert snapshot.tree is not None
    rules = language(snapshot.language_id)
    path = path_to(snapshot.tree, snapshot.source.byte_of(offset) + 1)
    before = _OWNER.search(snapshot.slice(offset - OWNER_REACH_CHARS, offset))
    role = _role(path, rules, before is not None)
    if role is None:
        return None
    owner = before[1] if before and role == "member" else ""
    enclosing = [snapshot.source.offset_of_byte(node.start_byte) for node in _enclosing(path, rules, role, owner)]
    return SyntaxKind(role, owner, tuple(enclosing), _is_type(path), _is_defined(path, rules))


def _role(path: list[Node], rules: Language, is_owned: bool) -> str | None:
    for node in reversed(path):
        if node.type in rules.embedded or node.type in rules.bodies:
            break
        if node.type in rules.strings or node.type in rules.comments:
            return None
    *_, parent, leaf = path[0], *path
    if "identifier" not in leaf.type or "shorthand" in leaf.type:
        return None
    if is_owned or leaf.type.startswith(("property", "field")):
        return "member"
    is_keyword = parent.type == "keyword_argument" and parent.child_by_field_name("name") == leaf
    return "keyword" if is_keyword else "name"


def _is_type(path: list[Node]) -> bool:
    """Whether a name is used as a type; type parameters count as variables."""
    kinds = [node.type for node in path[-3:]]
    return ("type_identifier" in kinds or "type" in kinds) and not any(each.startswith("type_param") for each in kinds)


def _is_defined(path: list[Node], rules: Language) -> bool:
    """Whether a name is being defined or declared: its parameters follow it."""
    leaf = path[-1]
    for node in path[-3:-1]:
        parameters = node.child_by_field_name("parameters")
        if parameters is not None and leaf.end_byte <= parameters.start_byte:
            return True
        if node.type in rules.definitions and node.child_by_field_name("name") == leaf:
            return True
    return False


def _enclosing(path: list[Node], rules: Language, role: str, owner: str) -> list[Node]:
    """The enclosing functions of a name, or classes of a member of `self`; a defined name is outside its definition."""
    if role == "member":
        wanted = _CLASS if owner in ("self", "this") else None
    else:
        wanted = _FUNCTION if role == "name" else None
    if wanted is None:
        return []
    found = [node for node in path if node.type in rules.definitions and wanted.search(node.type)]
    return [node for node in found if node.child_by_field_name("name") != path[-1]]


def _name_in(text: str, start: int) -> int:
    """The offset of the first name in a text that starts at `start`."""
    found = _NAME.search(text)
    return start + (found.start() if found else 0)


def _occurrences(replacement: Replacement, snapshot: Snapshot) -> Iterator[EditSite]:
    """Occurrences of the old text, except those that are already part of the new text."""
    pattern = _call(replacement.calls[0].name) if replacement.calls else _whole(replacement.old)
    first = max(0, replacement.start - SEARCH_REACH_CHARS)
    text_before = snapshot.slice(first, replacement.start)
    text_after = snapshot.slice(replacement.end, replacement.end + SEARCH_REACH_CHARS)
    after = (replacement.end + found.start() for found in pattern.finditer(text_after))
    before = [first + found.start() for found in pattern.finditer(text_before)]
    for at in chain(after, reversed(before)):
        site = (
            _call_at(replacement, snapshot, at) if replacement.calls else EditSite(at, replacement.old, replacement.new)
        )
        if site is not None and (site.old == site.new or not _is_part_of_new(site, snapshot)):
            yield site


def _call_at(replacement: Replacement, snapshot: Snapshot, at: int) -> EditSite | None:
    """The call that starts at an offset, if the change applies to it."""
    assert replacement.calls is not None
    _, end = snapshot.source.line_bounds(at)
    found = (call for call in calls(snapshot.slice(at, min(end, at + MAX_REPLACEMENT_CHARS))) if call.start == 0)
    call = next(found, None)
    new = with_same_change(*replacement.calls, call) if call is not None else None
    return EditSite(at, call.text, new) if call is not None and new is not None else None


def _call(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}\(")


def _whole(text: str) -> re.Pattern[str]:
    left, right = (r"(?<!\w)" if _NAME.match(text) else ""), (r"(?!\w)" if _ENDS_IN_WORD.search(text) else "")
    return re.compile(left + re.escape(text) + right)


def _is_part_of_new(site: EditSite, snapshot: Snapshot) -> bool:
    starts = (site.start - found.start() for found in re.finditer(f"(?={re.escape(site.old)})", site.new))
    return any(snapshot.slice(start, start + len(site.new)) == site.new for start in starts)
