"""What the syntax says about a name: whether it is a plain name or a member, and where it means the same.

It infers this from the tree's shape, without types: the same word as the same kind in the same scope is the same name.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tree_sitter import Node

from mercury_lsp.context.scope import path_to
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import Language, language

OWNER_REACH_CHARS = 60
"""Characters before a name that are searched for its owner."""

THIS = "this"
"""The owner of the class's own members, whatever the language calls it, and where they are declared."""

_OWN = ("self", "this", "cls", "Self")
_OWNER = re.compile(r"(\w*)[)\]?]*\s*(?:\.|->|::)\s*#?\Z")
_FUNCTION = re.compile("func|method|arrow|closure|constructor|lambda")
_CLASS = re.compile("class|impl|interface|trait")
_CLASS_BODIES = ("class_body", "interface_body", "enum_body", "declaration_list", "field_declaration_list")
_MEMBER_LEAVES = ("property", "field", "private_property", "shorthand_field")
_BINDING = re.compile(
    "assignment$|declarator|^for_|^let_|^short_var|^var_spec|range_clause|^as_pattern$|parameter|closure"
)
"""Nodes that bind a name in one of `_BOUND_FIELDS`; parameters bind one wherever it isn't a type or a default."""
_BOUND_FIELDS = ("left", "name", "pattern", "declarator", "alias", "parameter", "parameters")
_WITHIN_BINDING = re.compile("pattern|list|tuple|declarator|target|parameter")
"""Nodes between a name and the node that binds it."""
_FIELDS = ("field_declaration", "method_declaration", "method_spec", "method_elem")
_IMPLICIT_THIS = ("java", "cpp")
"""Languages in which a member of the class may be used like a plain name."""

FIELD_LANGUAGES = ("c", "cpp", "go", "rust")
"""Languages in which the functions that use a structure's fields are outside of it."""


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
    is_shorthand: bool = False
    """It stands for both a member and a name, as in `{count}`."""
    is_field: bool = False
    """It declares a field or method of a structure; what uses it is elsewhere in the file."""
    is_bound: bool = False
    """It is bound here: a parameter, a variable that is declared or assigned."""
    is_declared: bool = False
    """It declares a member directly in a class."""
    is_outer: bool = False
    """It is bound outside of the function that uses it."""
    is_any_owners: bool = False
    """It is the key of a table; whose member it becomes isn't known."""
    classes: tuple[int, ...] = ()
    """Offsets of the enclosing classes, outermost first."""

    @property
    def is_own_member(self) -> bool:
        """Whether it is a member of the class itself, by whatever name the language calls it."""
        return self.role == "member" and self.owner.startswith(THIS)

    @property
    def scope(self) -> int | None:
        """The offset of the innermost one; None for names with the same meaning in the whole file, such as types."""
        return self.enclosing[-1] if self.enclosing and not self.is_type else None

    def may_be_member(self, other: "SyntaxKind", scope: int | None, language_id: str) -> bool:
        """Whether this plain name may be the member that `other` is, if nothing shadows it."""
        is_here = scope is None or scope in self.classes
        is_own = other.is_field or (other.role == "member" and other.owner == THIS)
        return has_implicit_this(language_id) and self.role == "name" and is_own and is_here

    def may_match(self, other: "SyntaxKind", scope: int | None) -> bool:
        """Whether this name may denote the same thing as another one, which has that scope."""
        if other.is_field or other.is_any_owners:
            return self.role in ("member", "key") or self.is_shorthand
        if scope is not None and scope not in (*self.enclosing, *self.classes):
            return False
        return (self.role, self.owner) == (other.role, other.owner)


def has_implicit_this(language_id: str) -> bool:
    """Whether a member of the class may be used like a plain name."""
    return language_id in _IMPLICIT_THIS


def kind_at(snapshot: Snapshot, offset: int, name: str | None = None) -> SyntaxKind | None:
    """The kind of the name that starts at offset; None if no name does. `name`: what it was called."""
    assert snapshot.tree is not None
    rules = language(snapshot.language_id)
    path = path_to(snapshot.tree, snapshot.source.byte_of(offset) + 1)
    before = _OWNER.search(snapshot.slice(offset - OWNER_REACH_CHARS, offset))
    if before and "\n" in before[0] and _ends_in_comment(snapshot, offset - len(before[0]) + len(before[1]), rules):
        before = None  # a sentence's full stop
    role = _role(path, rules, before is not None)
    if role is None:
        return None
    owner = _owner(path, rules, before[1] if before else "", name) if role == "member" else ""
    if snapshot.language_id == "lua" and role in ("key", "member"):
        role, owner = _lua_member(path, role, owner)
    classes = _offsets(_around(path, rules, _CLASS), snapshot)
    functions = _offsets(_around(path, rules, _FUNCTION), snapshot) if role == "name" else ()
    return SyntaxKind(
        role,
        owner,
        classes if role == "member" and owner == THIS else functions,
        _is_type(path),
        _is_defined(path, rules),
        is_shorthand=_is_shorthand(path),
        is_field=path[-1].type == "field_identifier" and path[-2].type in _FIELDS,
        is_declared=_is_of_class(path, rules),
        is_bound=_is_bound(path) and not (functions and _is_of_outer_scope(path)),
        is_any_owners=role == "key" and snapshot.language_id == "lua",
        classes=classes,
    )


def _lua_member(path: list[Node], role: str, owner: str) -> tuple[str, str]:
    """Role and owner of a table's key or member; `self` and the table given to `setmetatable` are of the same class."""
    functions = [node for node in path if node.type == "function_declaration"]
    table = functions[-1].child_by_field_name("name") if functions else None
    of_class = table is not None and table.type in ("method_index_expression", "dot_index_expression")
    name = table.child_by_field_name("table") if table is not None and of_class else None
    own = f"{THIS} {(name.text or b'').decode('utf-8', 'replace')}" if name is not None else THIS
    if role == "member":
        return role, own if owner == THIS else owner
    call = path[-5] if len(path) > 4 else path[0]
    callee = call.child_by_field_name("name") if call.type == "function_call" else None
    is_instance = callee is not None and callee.text == b"setmetatable" and path[-4].named_child(0) == path[-3]
    return ("member", own) if is_instance else (role, owner)


def _ends_in_comment(snapshot: Snapshot, offset: int, rules: Language) -> bool:
    """Whether the text at an offset is part of a comment or a string."""
    assert snapshot.tree is not None
    path = path_to(snapshot.tree, snapshot.source.byte_of(offset) + 1)
    return any(node.type in rules.comments or node.type in rules.strings for node in path)


def _role(path: list[Node], rules: Language, is_owned: bool) -> str | None:
    for node in reversed(path):
        if node.type in rules.embedded or node.type in rules.bodies:
            break
        if node.type in rules.strings or node.type in rules.comments:
            return None
    leaf = path[-1]
    if "identifier" not in leaf.type:
        return None
    if _is_shorthand(path):
        return "name"
    if _is_key(path):
        return "key"
    return "member" if is_owned or leaf.type.startswith(_MEMBER_LEAVES) or _is_of_class(path, rules) else "name"


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


def _owner(path: list[Node], rules: Language, word: str, name: str | None) -> str:
    """The owner; members of the class that are declared in it, and private ones of its other objects, are its own."""
    text = name or (path[-1].text or b"").decode("utf-8", "replace")
    is_declared = not word and (path[-3].type in _CLASS_BODIES or _is_of_class(path, rules))
    return THIS if word in _OWN or is_declared or (word and text.startswith(("_", "#"))) else word


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
