"""Reads the syntax around the cursor: its class (argument, string, …) and the headers of enclosing definitions."""

import re
from enum import StrEnum

from mercury_engine.text.brackets import OPENER_OF, OPENING, code_outside_strings, string_starts
from tree_sitter import Node, Tree

from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import Language, language

MAX_IMPORT_CHARS = 600
"""Longest text of all imports together."""

MAX_HEADER_CHARS = 240
"""Longest header of one definition."""

_MAX_TOP_NODES = 64
"""Nodes at the start of the file that are searched for imports."""
_BRACKET_REACH_CHARS = 400
"""Characters before the cursor that are searched for an open bracket where the syntax is broken."""

_CLOSING_MARKS = ('"', "'", "`", ")", "]", "}", ">", ";", "*/", "-->")
_CALLABLE_END = re.compile(r"[\w)\]>!]\s*$")
_NOT_CALLED = re.compile(r"\b(if|elif|while|for|switch|match|return|and|or|not|in|is|else|yield|await|catch|case)\s*$")
_OPENS_BLOCK = re.compile(r"\{\s*$|\b(then|do|else|repeat)\s*$|\bfunction\b[^()]*\([^()]*\)\s*$")
_OPENS_INDENTED_BLOCK = re.compile(
    r"^\s*(async\s+)?(def|class|if|elif|else|for|while|with|try|except|finally|match|case)\b.*:\s*$"
)
"""The end of a line whose block begins in the next one; the second where indentation delimits blocks."""
_BLOCK_COMMENTS = {"// ": ("/*", "*/"), "/* ": ("/*", "*/"), "<!-- ": ("<!--", "-->"), "-- ": ("--[[", "]]")}
"""Opening and closing marks, by the language's line comment mark."""


class CursorClass(StrEnum):
    """The syntactic class of the cursor."""

    ARGUMENT = "argument"
    EXPRESSION = "expression"
    NEW_LINE_IN_BODY = "new line in body"
    COMMENT = "comment"
    STRING = "string"
    IMPORT = "import"
    OTHER = "other"
    """Plain text."""


def is_blank_before(snapshot: Snapshot, offset: int) -> bool:
    """Whether only blanks stand before offset on its line; only there may a suggestion have several lines."""
    return not _line_prefix(snapshot, offset).strip()


def wants_lines(snapshot: Snapshot, offset: int, cursor_class: CursorClass) -> bool:
    """Whether several lines may be suggested: on an empty line of a body, and at a line's end that opens a block."""
    if is_blank_before(snapshot, offset):
        return cursor_class is CursorClass.NEW_LINE_IN_BODY
    if cursor_class not in (CursorClass.EXPRESSION, CursorClass.NEW_LINE_IN_BODY):
        return False
    _, end = snapshot.source.line_bounds(offset)
    opens_block = _OPENS_INDENTED_BLOCK if language(snapshot.language_id).by_indent else _OPENS_BLOCK
    return not snapshot.slice(offset, end).strip() and bool(opens_block.search(_line_prefix(snapshot, offset)))


def is_prose(snapshot: Snapshot, offset: int, cursor_class: CursorClass) -> bool:
    """Whether a text at offset is a comment's, a longer string's, or that of a document without syntax."""
    if cursor_class is CursorClass.STRING:
        return string_starts(_line_prefix(snapshot, offset))[-1] is None
    return cursor_class in (CursorClass.COMMENT, CursorClass.OTHER)


def classify(snapshot: Snapshot, offset: int) -> CursorClass:
    """The class of the cursor at offset; where the syntax is broken, it is judged by the text."""
    if snapshot.tree is None:
        return CursorClass.OTHER
    rules, line_prefix = language(snapshot.language_id), _line_prefix(snapshot, offset)
    path = path_to(snapshot.tree, snapshot.source.byte_of(offset))
    found = _class_of_nodes(path, snapshot, offset, rules)
    if found is None and _is_broken(path):
        found = _class_of_text(snapshot, offset, line_prefix, rules)
    if found not in (None, CursorClass.EXPRESSION):
        return found
    if not line_prefix.strip():
        return CursorClass.NEW_LINE_IN_BODY
    if line_prefix.lstrip().startswith(rules.import_words or ("\0",)):
        return CursorClass.IMPORT
    return CursorClass.EXPRESSION


def headers(snapshot: Snapshot, offset: int, window_start: int) -> str:
    """Imports, then headers of the definitions around offset, outermost first, that the window cuts off."""
    if snapshot.tree is None:
        return ""
    rules, limit = language(snapshot.language_id), snapshot.source.byte_of(window_start)
    around = [node for node in _enclosing(snapshot, snapshot.tree, offset, rules) if node.start_byte < limit]
    return _imports(snapshot, snapshot.tree, rules, limit) + "".join(_header(snapshot, node) for node in around)


def path_to(tree: Tree, byte: int) -> list[Node]:
    """The nodes, from the root down to the leaf, that contain the byte before this one."""
    goal = max(0, byte - 1)
    cursor = tree.walk()
    path = [tree.root_node]
    while cursor.goto_first_child_for_byte(goal) is not None:
        node = cursor.node
        if node is None or node.start_byte > goal:
            break
        path.append(node)
    return path


def _class_of_nodes(path: list[Node], snapshot: Snapshot, offset: int, rules: Language) -> CursorClass | None:
    byte, before = snapshot.source.byte_of(offset), snapshot.slice(offset - 3, offset)
    for node in reversed(path):
        kind = node.type
        if kind in rules.bodies:
            return None
        if kind in rules.imports and not before.endswith("\n"):
            return CursorClass.IMPORT
        if not _is_open_at(node, byte, before, kind in rules.comments):
            continue
        if kind in rules.embedded or kind in rules.lists:
            return CursorClass.EXPRESSION
        if kind in rules.comments:
            return CursorClass.COMMENT
        if kind in rules.strings:
            return CursorClass.STRING
        if kind in rules.arguments:
            return CursorClass.ARGUMENT
    return None


def _is_open_at(node: Node, byte: int, before: str, is_comment: bool) -> bool:
    """Whether a node that contains the byte before the cursor will also contain text typed there."""
    if node.end_byte != byte:
        return node.end_byte > byte
    if is_comment:
        return not before.endswith(("\n", "*/", "-->", "]]"))
    return not before.endswith(("\n", *_CLOSING_MARKS))


def _is_broken(path: list[Node]) -> bool:
    """Whether the syntax around the cursor has an error, or was edited since the last parse."""
    if any(node.is_error or node.is_missing for node in path):
        return True
    return any(node.has_error or node.has_changes for node in path[-3:])


def _class_of_text(snapshot: Snapshot, offset: int, line_prefix: str, rules: Language) -> CursorClass | None:
    if code_outside_strings(line_prefix[-_BRACKET_REACH_CHARS:], rules.quotes)[1]:
        return CursorClass.STRING
    before = snapshot.slice(offset - _BRACKET_REACH_CHARS, offset)
    opening, closing = _BLOCK_COMMENTS.get(rules.marks.opening, ("", ""))
    if opening and before.rfind(opening) > before.rfind(closing):
        return CursorClass.COMMENT
    if rules.arguments and _has_open_call(before):
        return CursorClass.ARGUMENT
    return None


def _has_open_call(text: str) -> bool:
    """Whether the innermost bracket left open, after the last empty line of the text, opens a call."""
    text = text.rpartition("\n\n")[2]
    closed: list[str] = []
    for index in reversed(range(len(text))):
        character = text[index]
        if character in OPENER_OF:
            closed.append(OPENER_OF[character])
        elif character in OPENING:
            if not closed:
                before = text[:index]
                called = _CALLABLE_END.search(before) and not _NOT_CALLED.search(before)
                return character == "(" and bool(called)
            if closed.pop() != character:
                return False
    return False


def _imports(snapshot: Snapshot, tree: Tree, rules: Language, limit: int) -> str:
    """The imports among the file's first nodes that start before byte `limit`."""
    found, cursor = "", tree.walk()
    has_node = cursor.goto_first_child()
    for _ in range(_MAX_TOP_NODES):
        if not has_node or (node := cursor.node) is None or node.start_byte >= limit:
            break
        if node.type in rules.imports:
            start, end = map(snapshot.source.offset_of_byte, (node.start_byte, node.end_byte))
            text = snapshot.slice(start, min(end, start + MAX_IMPORT_CHARS)).rstrip() + "\n"
            if len(found) + len(text) > MAX_IMPORT_CHARS:
                break
            found += text
        has_node = cursor.goto_next_sibling()
    return found


def _enclosing(snapshot: Snapshot, tree: Tree, offset: int, rules: Language) -> list[Node]:
    """Definitions that enclose offset, outermost first; in an indented language, a blank line's indentation counts."""
    prefix = _line_prefix(snapshot, offset)
    is_blank = rules.by_indent and not prefix.strip()
    if is_blank:
        before = snapshot.slice(offset - _BRACKET_REACH_CHARS, offset)
        offset -= len(before) - len(before.rstrip())
    path = path_to(tree, snapshot.source.byte_of(offset))
    around = [node for node in path if node.type in rules.definitions]
    return [node for node in around if node.start_point.column < len(prefix)] if is_blank else around


def _header(snapshot: Snapshot, node: Node) -> str:
    """The lines of a definition before its body, with the opening brace if there is one."""
    start, _ = snapshot.source.line_bounds(snapshot.source.offset_of_byte(node.start_byte))
    body = node.child_by_field_name("body")
    if body is None:
        line, _ = snapshot.line_at(start)
        return line[:MAX_HEADER_CHARS].rstrip() + "\n"
    at = snapshot.source.offset_of_byte(body.start_byte)
    end = at + 1 if snapshot.slice(at, at + 1) == "{" else at
    return snapshot.slice(start, min(end, start + MAX_HEADER_CHARS)).rstrip() + "\n"


def _line_prefix(snapshot: Snapshot, offset: int) -> str:
    start, _ = snapshot.source.line_bounds(offset)
    return snapshot.slice(start, offset)
