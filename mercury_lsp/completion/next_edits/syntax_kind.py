"""What the syntax says about a plain name: where it means the same, and whether it is bound there.

It infers this from the tree's shape, without types: the same word in the same scope is the same name. Members and keys
are left to language servers (`highlights.py`), which know types, and to changes made twice.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tree_sitter import Node

from mercury_lsp.context.scope import path_to
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import Language, language

OWNER_REACH_CHARS = 8
"""Characters before a name that are searched for the mark of a member."""

_OWNED = re.compile(r"(?<!\.)(?:\.|->|::)[ \t]*#?\Z")
_FUNCTION = re.compile("func|method|arrow|closure|constructor|lambda")
_CLASS = re.compile("class|impl|interface|trait")
_MEMBER_LEAVES = ("property", "field", "private_property", "shorthand_field")
_BINDING = re.compile(
    "assignment$|declarator|^for_|^let_|^short_var|^var_spec|range_clause|^as_pattern$|parameter|closure"
)
"""Nodes that bind a name in one of `_BOUND_FIELDS`; parameters bind one wherever it isn't a type or a default."""
_BOUND_FIELDS = ("left", "name", "pattern", "declarator", "alias", "parameter", "parameters")
_WITHIN_BINDING = re.compile("pattern|list|tuple|declarator|target|parameter")
"""Nodes between a name and the node that binds it."""


@dataclass(frozen=True, slots=True)
class SyntaxKind:
    """What the syntax says about a name."""

    enclosing: tuple[int, ...]
    """Offsets of the enclosing functions, outermost first, outside of which the name may mean something else."""
    is_type: bool
    is_defined: bool
    """It is the name in the header of a function or class, which merely looks like a call."""
    is_shorthand: bool = False
    """It stands for both a member and a name, as in `{count}`."""
    is_bound: bool = False
    """It is bound here: a parameter, a variable that is declared or assigned."""
    is_outer: bool = False
    """It is bound outside of the function that uses it."""

    @property
    def scope(self) -> int | None:
        """The offset of the innermost one; None for names with the same meaning in the whole file, such as types."""
        return self.enclosing[-1] if self.enclosing and not self.is_type else None

    def may_match(self, scope: int | None) -> bool:
        """Whether this name may denote the same thing as another one, which has that scope."""
        return scope is None or scope in self.enclosing


def kind_at(snapshot: Snapshot, offset: int) -> SyntaxKind | None:
    """The kind of the plain name that starts at offset; None if none does."""
    rules, path = language(snapshot.language_id), _path_at(snapshot, offset)
    is_owned = _OWNED.search(snapshot.slice(max(0, offset - OWNER_REACH_CHARS), offset)) is not None
    if is_owned or not _is_plain(path, rules):
        return None
    functions = _offsets(_around(path, rules, _FUNCTION), snapshot)
    return SyntaxKind(
        functions,
        _is_type(path),
        _is_defined(path, rules),
        is_shorthand=_is_shorthand(path),
        is_bound=_is_bound(path) and not (functions and _is_of_outer_scope(path)),
    )


def _path_at(snapshot: Snapshot, offset: int) -> list[Node]:
    assert snapshot.tree is not None
    return path_to(snapshot.tree, snapshot.source.byte_of(offset) + 1)


def _is_plain(path: list[Node], rules: Language) -> bool:
    """Whether a path leads to a name in code that is neither a key nor a member."""
    for node in reversed(path):
        if node.type in rules.embedded or node.type in rules.bodies:
            break
        if node.type in rules.strings or node.type in rules.comments:
            return False
    leaf = path[-1].type
    if "identifier" not in leaf or (leaf.startswith(_MEMBER_LEAVES) and not _is_shorthand(path)):
        return False
    return not (_is_key(path) or _is_of_class(path, rules))


def _is_shorthand(path: list[Node]) -> bool:
    return len(path) > 1 and ("shorthand" in path[-1].type or "shorthand" in path[-2].type)


def _is_key(path: list[Node]) -> bool:
    """Whether a name is a keyword of an argument, or the key of an element or table."""
    *_, above, parent, leaf = (path[0], path[0], *path)
    if parent.type in ("keyword_argument", "field"):
        return parent.child_by_field_name("name") == leaf
    return above.type == "keyed_element" and above.named_child(0) == parent


def _is_of_class(path: list[Node], rules: Language) -> bool:
    """Whether a plain name declares a member directly in a class, as a method, a field or an assigned attribute."""
    around = [node for node in path if node.type in rules.definitions and not _is_name_of(node, path)]
    if not around or not _CLASS.search(around[-1].type) or len(path) < 3:
        return False
    parent = path[-2]
    if parent.type == "assignment":
        return parent.child_by_field_name("left") == path[-1]
    if parent.type in rules.definitions and _is_name_of(parent, path):
        return bool(_FUNCTION.search(parent.type))
    return parent.type == "variable_declarator" and path[-3].type == "field_declaration"


def _is_bound(path: list[Node]) -> bool:
    """Whether a name is bound where it stands: as a parameter, or on the left of what declares or assigns it."""
    for parent, node in zip(path[-2::-1], path[:0:-1], strict=False):
        if "parameter" in parent.type and parent.type not in ("parameters", "parameter_list", "formal_parameters"):
            return all(parent.child_by_field_name(field) != node for field in ("value", "type"))
        if _BINDING.search(parent.type) and any(parent.child_by_field_name(each) == node for each in _BOUND_FIELDS):
            return True
        if parent.type in ("parameters", "lambda_parameters", "formal_parameters", "closure_parameters"):
            return True
        if not _WITHIN_BINDING.search(parent.type):
            return False
    return False


def _is_of_outer_scope(path: list[Node]) -> bool:
    """Whether Python's function declares that the name it assigns is the module's, or that of a function around it."""
    function = next((node for node in reversed(path) if node.type == "function_definition"), None)
    body = function.child_by_field_name("body") if function is not None else None
    statements = body.named_children if body is not None else ()
    declared = [node for node in statements if node.type in ("global_statement", "nonlocal_statement")]
    return any(name.text == path[-1].text for node in declared for name in node.named_children)


def _is_name_of(node: Node, path: list[Node]) -> bool:
    """Whether the path's leaf is the name of a definition, in C after declarators."""
    while (inner := node.child_by_field_name("declarator")) is not None and inner in path:
        node = inner
    return node == path[-1] or node.child_by_field_name("name") == path[-1]


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
        if node.type in rules.definitions and _is_name_of(node, path):
            return True
    return False


def _around(path: list[Node], rules: Language, wanted: re.Pattern[str]) -> list[Node]:
    """The enclosing functions or classes of a name; a defined name is outside its own definition."""
    found = [node for node in path if node.type in rules.definitions and wanted.search(node.type)]
    return [node for node in found if not _is_name_of(node, path)]


def _offsets(nodes: Sequence[Node], snapshot: Snapshot) -> tuple[int, ...]:
    return tuple(snapshot.source.offset_of_byte(node.start_byte) for node in nodes)
