"""A source file with its syntax tree: its names, and where they are bound."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from mercury_lsp.documents.languages import language, new_parser

_FUNCTION = re.compile("func|method|arrow|closure|constructor")

_BINDING = frozenset(
    {
        "parameters",
        "formal_parameters",
        "closure_parameters",
        "lambda_parameters",
        "typed_parameter",
        "as_pattern_target",
        "default_parameter:name",
        "typed_default_parameter:name",
        "parameter_declaration:name",
        "variable_declarator:name",
        "var_spec:name",
        "const_spec:name",
        "assignment:left",
        "for_statement:left",
        "for_in_clause:left",
        "for_in_statement:left",
        "short_var_declaration:left",
        "range_clause:left",
        "assignment_pattern:left",
        "parameter:pattern",
        "let_declaration:pattern",
        "for_expression:pattern",
        "catch_clause:parameter",
    }
)
"""Nodes whose child, or whose child in this field, is a name that is bound there."""

_LISTS = ("pattern_list", "tuple_pattern", "expression_list", "array_pattern")

_FIELDS = ("name", "left", "pattern", "parameter")


@dataclass(frozen=True, slots=True)
class Name:
    """An occurrence of a name; `start` counts characters."""

    word: str
    start: int
    node: Node

    @property
    def is_member(self) -> bool:
        """Whether it is a member of something."""
        return _is(self.node, "attribute", "attribute") or self.node.type.startswith(("property", "field"))

    @property
    def is_plain(self) -> bool:
        """Whether it stands for a variable, function or class of its own."""
        return self.node.type == "identifier" and not self.is_member and not _is(self.node, "keyword_argument", "name")

    @property
    def is_ambiguous(self) -> bool:
        """Whether it is both a key and a variable."""
        return "shorthand" in self.node.type

    @property
    def is_bound(self) -> bool:
        """Whether it is bound here."""
        node, parent = self.node, self.node.parent
        while parent is not None and parent.type in _LISTS:
            node, parent = parent, parent.parent
        if parent is None:
            return False
        field = next((each for each in _FIELDS if parent.child_by_field_name(each) == node), "")
        return parent.type in _BINDING or f"{parent.type}:{field}" in _BINDING

    @property
    def is_argument(self) -> bool:
        """Whether it alone is an argument of a call."""
        return self.node.parent is not None and self.node.parent.type in ("argument_list", "arguments")


class Source:
    """One file; offsets count characters."""

    def __init__(self, name: str, language_id: str, text: str):
        self.name, self.language, self.text = name, language_id, text
        self._data = text.encode()
        self.root = new_parser(language_id).parse(self._data).root_node
        self.names = self.names_in(self.root)
        self.words = sorted({name.word for name in self.names})

    def names_in(self, node: Node) -> list[Name]:
        """The names below a node, in text order."""
        leaves = (each for each in _below(node) if not each.child_count and "identifier" in each.type)
        return [Name(self.text_of(each), self.offset(each.start_byte), each) for each in leaves]

    def functions(self) -> list[Node]:
        """All functions, including nested ones."""
        kinds = language(self.language).definitions
        return [each for each in _below(self.root) if each.type in kinds and _FUNCTION.search(each.type)]

    def nodes(self, kind: str) -> list[Node]:
        """All nodes of a type."""
        return [each for each in _below(self.root) if each.type == kind]

    def text_of(self, node: Node | None) -> str:
        """The text of a node."""
        return "" if node is None else self._data[node.start_byte : node.end_byte].decode()

    def offset(self, byte: int) -> int:
        """The character offset of a byte offset."""
        return len(self._data[:byte].decode())


def contains(outer: Node, inner: Node) -> bool:
    """Whether `outer` contains `inner`."""
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte


def _is(node: Node, kind: str, field: str) -> bool:
    return node.parent is not None and node.parent.type == kind and node.parent.child_by_field_name(field) == node


def _below(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        each = pending.pop()
        yield each
        pending += reversed(each.children)
