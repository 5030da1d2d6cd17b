"""Lists a file's declarations: function signatures, classes with methods, constants and types, one per line."""

from collections.abc import Callable, Iterator
from itertools import count

from tree_sitter import Node, Parser

from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.languages import Language, language, parser
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


CALLBACKS_PER_REST = 8
"""Progress callbacks of the parser between two rests: about a millisecond."""


def declarations(language_id: str, text: str, rest_if_due: RestIfDue) -> str:
    """The declarations of a text, one per line; empty for languages without rules."""
    nodes = language(language_id)
    if not nodes.headed:
        return ""
    source = text.encode("utf-8", "surrogatepass")
    lines, room = [], MAX_DECLARATIONS_CHARS
    for line in _within(_parsed(parser(language_id), text, rest_if_due), source, nodes, 0):
        rest_if_due()
        room -= len(line)
        if room < 0:
            break
        lines.append(line)
    return "".join(lines)


def _parsed(parser: Parser, text: str, rest_if_due: RestIfDue) -> Node:
    """The root of the tree; the parser pauses for rests and resumes where it stopped."""
    source, callbacks = ChunkedText.of(text), count(1)

    def is_enough(_byte: int, _has_error: bool) -> bool:
        return next(callbacks) % CALLBACKS_PER_REST == 0

    while (tree := begin_or_resume(parser, source, is_enough)) is None:
        rest_if_due()
    return tree.root_node


def _within(node: Node, source: bytes, nodes: Language, depth: int) -> Iterator[str]:
    for child in node.named_children:
        if child.type in nodes.passed:
            yield from _within(child, source, nodes, depth)
        elif child.type in nodes.headed or child.type in nodes.holding:
            if (header := _header(child, source)) and not _is_private(child, source):
                yield INDENT * depth + header
                body = child.child_by_field_name("body")
                if child.type in nodes.holding and body is not None and depth < MAX_NESTING_DEPTH:
                    yield from _within(body, source, nodes, depth + 1)
        elif child.type in nodes.whole and not _is_private(child, source) and (line := _whole(child, source)):
            yield INDENT * depth + line


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
