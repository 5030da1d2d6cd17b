"""Lists a file's declarations: function signatures, classes with methods, constants and types, one per line."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tree_sitter import Node, Parser

from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.languages import NodeTypes, parser
from mercury_lsp.documents.parsing import begin_or_resume

MAX_DECLARATION_CHARS = 160
"""Longest declaration; longer ones are cut."""

MAX_DECLARATIONS_CHARS = 8_000
"""Longest list of one file's declarations."""

MAX_NESTING_DEPTH = 8
"""Levels of nested classes and namespaces listed."""

INDENT = "    "

RestIfDue = Callable[[], None]
"""Called now and then to give other threads a turn."""


@dataclass(frozen=True, slots=True)
class _DeclaringNodes:
    """Types of declaring nodes, by how they are listed."""

    headed: NodeTypes
    """Listed up to the body."""
    holding: NodeTypes
    """Listed up to the body; the body's declarations follow, indented."""
    whole: NodeTypes
    """Listed whole on one line, if short."""
    passed: NodeTypes
    """Replaced by their contents."""


def _declaring(headed: str = "", holding: str = "", whole: str = "", passed: str = "") -> _DeclaringNodes:
    """Node types given as words."""
    return _DeclaringNodes(*(frozenset(names.split()) for names in (headed, holding, whole, passed)))


_SCRIPT = _declaring(
    headed="function_declaration generator_function_declaration method_definition function_signature",
    holding="class_declaration abstract_class_declaration interface_declaration",
    whole="lexical_declaration variable_declaration field_definition public_field_definition enum_declaration"
    " type_alias_declaration property_signature method_signature abstract_method_signature",
    passed="export_statement class_body interface_body object_type internal_module statement_block ambient_declaration",
)

_C = _declaring(
    headed="function_definition",
    holding="class_specifier",
    whole="declaration type_definition struct_specifier enum_specifier union_specifier field_declaration preproc_def"
    " preproc_function_def alias_declaration",
    passed="preproc_ifdef preproc_if preproc_else linkage_specification namespace_definition declaration_list"
    " template_declaration field_declaration_list",
)

_DECLARING = {
    "python": _declaring(
        headed="function_definition",
        holding="class_definition",
        whole="assignment type_alias_statement",
        passed="decorated_definition expression_statement block if_statement",
    ),
    "javascript": _SCRIPT,
    "javascriptreact": _SCRIPT,
    "typescript": _SCRIPT,
    "typescriptreact": _SCRIPT,
    "go": _declaring(
        headed="function_declaration method_declaration",
        whole="type_declaration const_declaration var_declaration",
    ),
    "rust": _declaring(
        headed="function_item function_signature_item",
        holding="impl_item trait_item",
        whole="struct_item enum_item const_item static_item type_item union_item",
        passed="declaration_list mod_item",
    ),
    "java": _declaring(
        headed="method_declaration constructor_declaration",
        holding="class_declaration interface_declaration enum_declaration record_declaration",
        whole="field_declaration constant_declaration",
        passed="class_body interface_body enum_body enum_body_declarations",
    ),
    "c": _C,
    "cpp": _C,
    "lua": _declaring(headed="function_declaration", whole="variable_declaration assignment_statement"),
}


class Declarer:
    """Parses files for their declarations; for one thread."""

    def __init__(self, rest_if_due: RestIfDue):
        self._rest_if_due = rest_if_due

    def declarations(self, language_id: str, text: str) -> str:
        """The declarations of a text, one per line; empty for languages without rules."""
        if language_id not in _DECLARING:
            return ""
        source = text.encode("utf-8", "surrogatepass")
        root = self._parse(parser(language_id), text)
        lines, room = [], MAX_DECLARATIONS_CHARS
        for line in self._within(root, source, _DECLARING[language_id], 0):
            self._rest_if_due()
            room -= len(line)
            if room < 0:
                break
            lines.append(line)
        return "".join(lines)

    def _parse(self, parser: Parser, text: str) -> Node:
        """The root of the tree; the parser pauses for rests and resumes where it stopped."""
        source = ChunkedText.of(text)
        while True:
            steps = 0

            def is_enough(_byte: int, _has_error: bool) -> bool:
                nonlocal steps
                steps += 1
                return steps > _CALLBACKS_PER_REST

            if (tree := begin_or_resume(parser, source, is_enough)) is not None:
                return tree.root_node
            self._rest_if_due()

    def _within(self, node: Node, source: bytes, nodes: _DeclaringNodes, depth: int) -> Iterator[str]:
        for child in node.named_children:
            if child.type in nodes.passed:
                yield from self._within(child, source, nodes, depth)
            elif child.type in nodes.headed or child.type in nodes.holding:
                if (header := _header(child, source)) and not _is_private(child, source):
                    yield INDENT * depth + header
                    body = child.child_by_field_name("body")
                    if child.type in nodes.holding and body is not None and depth < MAX_NESTING_DEPTH:
                        yield from self._within(body, source, nodes, depth + 1)
            elif child.type in nodes.whole and not _is_private(child, source) and (line := _whole(child, source)):
                yield INDENT * depth + line


_CALLBACKS_PER_REST = 8
"""Progress callbacks of the parser between two rests: about a millisecond."""


def _header(node: Node, source: bytes) -> str:
    """A definition up to its body, on one line."""
    body = node.child_by_field_name("body")
    return _one_line(source[node.start_byte : body.start_byte if body is not None else node.end_byte])


def _whole(node: Node, source: bytes) -> str:
    """A short declaration whole, a long one up to its first line break."""
    text = source[node.start_byte : node.end_byte]
    line = _one_line(text)
    return line if len(line) < MAX_DECLARATION_CHARS else _one_line(text.partition(b"\n")[0])


def _one_line(text: bytes) -> str:
    return " ".join(text.decode("utf-8", "replace").split())[: MAX_DECLARATION_CHARS - 1] + "\n"


def _is_private(node: Node, source: bytes) -> bool:
    """Whether the name marks it as private to its file."""
    name = node.child_by_field_name("name") or node.child_by_field_name("left")
    if name is None:
        return False
    text = source[name.start_byte : name.end_byte]
    return text.startswith(b"_") and not (text.startswith(b"__") and text.endswith(b"__"))
