"""The places of a name in one document: as another language server says, or else as the syntax tree suggests.

The uses of a plain name are those inside the smallest function that binds it, or else in the file; those of a member of
`self` or `this` are in its class. Other members, and keys, need types and are left to language servers.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from tree_sitter import Node

from mercury_lsp.completion.next_edits.change import moved_offset
from mercury_lsp.completion.next_edits.checks import quoted_in
from mercury_lsp.completion.next_edits.edit_sites import text_around
from mercury_lsp.completion.next_edits.replacement import Replacement
from mercury_lsp.context.scope import path_to
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.documents.languages import language

MAX_USES = 1_000
"""Nearest uses of a name that are looked at, at some 20 microseconds each, once for each name that is changed."""

OWNER_CHARS = 8
"""Characters before a name that are searched for what it is a member of."""

_OWNED = re.compile(r"(?<!\.)(?:\.|->|::)[ \t]*#?\Z")
_OF_SELF = re.compile(r"\b(?:self|this)(?:\.|->)#?\Z")
_FUNCTION = re.compile("func|method|arrow|closure|constructor|lambda")
_CLASS = re.compile("class|impl|interface|trait")
_BINDING = re.compile(
    "assignment$|declarator|^for_|^let_|^short_var|^var_spec|range_clause|^as_pattern$|parameter|closure"
)
"""Nodes that bind a name in one of `_BOUND_FIELDS`; parameters bind one wherever it isn't a type or a default."""
_BOUND_FIELDS = ("left", "name", "pattern", "declarator", "alias", "parameter", "parameters")
_WITHIN_BINDING = re.compile("pattern|list|tuple|declarator|target|parameter")
"""Nodes between a name and the node that binds it."""
_PARAMETERS = ("parameters", "lambda_parameters", "formal_parameters", "closure_parameters")


@dataclass(frozen=True, slots=True)
class NamePlaces:
    """The places of a name in one document, from the top down, by offsets that edits move."""

    name: str = ""
    starts: tuple[int, ...] = ()
    binding: int | None = None
    """The index of the first place that binds the name."""
    is_told: bool = False
    """Whether another language server, which knows scopes and types, says so."""
    shorthands: frozenset[int] = frozenset()
    """Indices of the places that stand for a key, too, as in `{count}`."""

    @classmethod
    def told(cls, snapshot: Snapshot, places: Iterable[tuple[int, int, bool]]) -> "NamePlaces":
        """Those of a version: start and end of each, and whether the name is written there; none if texts differ."""
        found = sorted(set(places))
        names = {snapshot.slice(start, end) for start, end, _ in found}
        if len(names) != 1:
            return cls()
        written = (index for index, (_, _, is_written) in enumerate(found) if is_written)
        return cls(names.pop(), tuple(start for start, _, _ in found), next(written, None), is_told=True)

    def replaced_by(self, other: "NamePlaces", snapshot: Snapshot) -> "NamePlaces":
        """The newer ones, if there are any; but of a renaming under way only the older ones know all places."""
        stands = [stands_at(self.name, at, snapshot) for at in self.starts]
        is_under_way = any(stands) and not all(stands) and not {*self.starts}.isdisjoint(other.starts)
        return other if other.starts and not is_under_way else self

    def know(self, replacement: Replacement) -> bool:
        """Whether the name was replaced in one of these places."""
        return replacement.old == self.name and replacement.start in self.starts

    def after(self, edit: Edit, *new: str) -> "NamePlaces":
        """The places after an edit, in which the name may have become one of the `new` ones."""
        if not self.starts or edit.start > self.starts[-1]:
            return self
        return replace(self, starts=tuple(_moved(at, edit, (self.name, *new)) for at in self.starts))


def stands_at(name: str, at: int, snapshot: Snapshot) -> bool:
    """Whether the whole name stands at an offset."""
    text = snapshot.slice(at, at + len(name) + 1)
    return text.startswith(name) and re.match(r"\w", text[len(name) :]) is None


def with_shorthands(places: NamePlaces, snapshot: Snapshot) -> NamePlaces:
    """The places, with those that are shorthands in a version of their document."""
    paths = ((index, _path_to(at, snapshot)) for index, at in enumerate(places.starts))
    return replace(places, shorthands=frozenset(index for index, path in paths if _is_shorthand(path)))


def places_of(replacement: Replacement, made: Iterable[int], snapshot: Snapshot) -> NamePlaces | None:
    """Where the old name means the same as here; the new one stands already at `replacement` and, perhaps, at `made`.

    None for what is no such name, and before the document is parsed.
    """
    here = _use_at(replacement.start, snapshot)
    if here is None:
        return None
    there = (_use_at(at, snapshot) for at in made if at != here.start)
    uses = [here, *filter(None, there), *_uses(replacement.old, here, snapshot)]
    uses.sort(key=lambda use: use.start)
    outer = {each.around for each in uses if each.is_outer}
    binders = {each.around for each in uses if each.binds or each.is_member} - outer
    same = [each for each in uses if each.home(binders) == here.home(binders)]
    binding = next((index for index, each in enumerate(same) if each.binds), None)
    return NamePlaces(replacement.old, tuple(each.start for each in same), binding)


def was_there(replacement: Replacement, places: NamePlaces, snapshot: Snapshot) -> bool:
    """Whether the new name is used where the old one is bound: the user chose another name instead of renaming one."""
    here = _use_at(replacement.start, snapshot)
    if here is None:
        return False
    binding = None if places.binding is None else _use_at(places.starts[places.binding], snapshot)
    home = () if binding is None else binding.around
    uses = _uses(replacement.new, here, snapshot)
    return any(each.around[: len(home)] == home and each.start not in places.starts for each in uses)


@dataclass(frozen=True, slots=True)
class _Use:
    """A use of a plain name, or of a member of `self`."""

    start: int
    around: tuple[int, ...]
    """Offsets of the functions around it, outermost first; of a member that of its class."""
    binds: bool
    is_outer: bool
    """It only declares that the name is bound further out."""
    is_member: bool

    def home(self, binders: Collection[tuple[int, ...]]) -> tuple[int, ...]:
        """The innermost of the functions around it that is among `binders`; empty for the file."""
        return next((self.around[:n] for n in range(len(self.around), 0, -1) if self.around[:n] in binders), ())


def _uses(name: str, here: _Use, snapshot: Snapshot) -> Iterator[_Use]:
    """The uses of a name near another use, as the same: a plain name or a member."""
    start, text = text_around(here.start, snapshot)
    found = [start + each.start() for each in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
    for at in sorted(found, key=lambda at: abs(at - here.start))[:MAX_USES]:
        use = _use_at(at, snapshot)
        if use is not None and use.is_member == here.is_member:
            yield use


def _use_at(at: int, snapshot: Snapshot) -> _Use | None:
    """The use that begins at an offset; None if there is none, and before the document is parsed."""
    rules, path = language(snapshot.language_id), _path_to(at, snapshot)
    if len(path) < 2 or "identifier" not in path[-1].type or quoted_in(path, rules):
        return None
    before = snapshot.slice(max(0, at - OWNER_CHARS), at)
    is_member = _OF_SELF.search(before) is not None
    definitions = [node for node in path if node.type in rules.definitions]
    around = [node for node in definitions if not _is_name_of(node, path)]
    is_local = path[-4:][0].type == "variable_declaration" and _is_assigned(path)  # in Lua
    binds = _is_assigned(path[:-1]) if is_member else is_local or _is_bound(path) or len(around) < len(definitions)
    is_in_class = bool(around) and _CLASS.search(around[-1].type) is not None
    if not is_member and (_OWNED.search(before) or _is_key(path) or (binds and is_in_class)):
        return None
    scopes = [node for node in around if (_CLASS if is_member else _FUNCTION).search(node.type)]
    starts = tuple(snapshot.source.offset_of_byte(node.start_byte) for node in scopes)
    return _Use(at, starts, binds, path[-2].type in ("global_statement", "nonlocal_statement"), is_member)


def _path_to(at: int, snapshot: Snapshot) -> list[Node]:
    """The nodes down to the leaf at an offset; none before the document is parsed."""
    if snapshot.tree is None or not snapshot.is_parsed:
        return []
    return path_to(snapshot.tree, snapshot.source.byte_of(at) + 1)


def _is_shorthand(path: list[Node]) -> bool:
    return any("shorthand" in node.type for node in path[-2:])


def _is_key(path: list[Node]) -> bool:
    """Whether a name is a keyword of an argument, or the key of an element or table."""
    *_, above, parent, leaf = (path[0], path[0], *path)
    if _is_shorthand(path):
        return False
    if parent.type in ("keyword_argument", "field"):
        return parent.child_by_field_name("name") == leaf
    is_keyed = above.type == "keyed_element" and above.named_child(0) == parent
    return is_keyed or leaf.type.startswith(("property", "field", "private_property"))


def _is_bound(path: list[Node]) -> bool:
    """Whether the path's leaf is bound where it stands: as a parameter, or on the left of what declares or assigns."""
    for parent, node in zip(path[-2::-1], path[:0:-1], strict=False):
        if "parameter" in parent.type and parent.type not in (*_PARAMETERS, "parameter_list"):
            return all(parent.child_by_field_name(field) != node for field in ("value", "type"))
        if _BINDING.search(parent.type) and any(parent.child_by_field_name(each) == node for each in _BOUND_FIELDS):
            return True
        if parent.type in _PARAMETERS:
            return True
        if not _WITHIN_BINDING.search(parent.type):
            return False
    return False


def _is_assigned(path: list[Node]) -> bool:
    """Whether the path's last node is on the left of an assignment."""
    for parent, node in zip(path[-2::-1], path[:0:-1], strict=False):
        if "assign" in parent.type or not _WITHIN_BINDING.search(parent.type):
            return "assign" in parent.type and parent.child(0) == node
    return False


def _is_name_of(node: Node, path: list[Node]) -> bool:
    """Whether the path's leaf is the name of a definition, in C after declarators."""
    while (inner := node.child_by_field_name("declarator")) is not None and inner in path:
        node = inner
    return path[-1] in (node, node.child_by_field_name("name"))


def _moved(at: int, edit: Edit, names: tuple[str, ...]) -> int:
    """A place after an edit: where one of its names stands again, or else where an edit at its start leaves it."""
    if edit.start <= at < edit.start + len(edit.removed):
        pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)"
        before, after = (
            [each.start() for each in re.finditer(pattern, text)] for text in (edit.removed, edit.inserted)
        )
        if len(before) == len(after) and at - edit.start in before:
            return edit.start + after[before.index(at - edit.start)]
    is_typed_before = not edit.removed and re.search(r"\W\Z", edit.inserted) is not None
    return at if edit.start == at and not is_typed_before else moved_offset(at, edit)
