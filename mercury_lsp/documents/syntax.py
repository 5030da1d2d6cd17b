"""Checks whether a fill parses in its place, by an incremental parse of the document with the fill inserted."""

from tree_sitter import Node, Tree, TreeCursor

from mercury_lsp.documents.chunked_text import encode
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import parser
from mercury_lsp.documents.parsing import edited_tree, parse

CHECK_SECONDS = 0.01
"""Budget of a check; a late suggestion is worse than an unchecked one."""

CHECK_REACH_BYTES = 4_000
"""Text after a fill that is parsed again. If a fill opens a bracket, 12,000 lines would take 20 ms on a busy core; this
much takes 3. In 160 fills, 47 of them wrong, the first error stayed the same.
"""


def first_error(snapshot: Snapshot, offset: int, text: str) -> int | None:
    """Index of the first syntax error within a text inserted at offset; None if there is none.

    Errors that reach the end of the text do not count: the user may yet finish them. For any thread.
    """
    if not text.strip() or (parsed := _parsed(snapshot, offset, offset, text, CHECK_REACH_BYTES)) is None:
        return None
    start = snapshot.source.byte_of(offset)
    error = _first_within(parsed, start, start + len(encode(text)))
    return None if error is None else len(encode(text)[: error - start].decode("utf-8", "ignore"))


def breaks(snapshot: Snapshot, start: int, end: int, text: str) -> bool:
    """Whether a text in place of [start, end) causes a syntax error there, or at its edges, where there was none."""
    if snapshot.tree is None or (parsed := _parsed(snapshot, start, end, text)) is None:
        return False
    first, old_last = snapshot.source.byte_of(start), snapshot.source.byte_of(end)
    last = first + len(encode(text))
    # One byte more on either side, because `_first_within` excludes both ends.
    is_wrong_now = _first_within(parsed, first - 1, last + 1) is not None
    return is_wrong_now and _first_within(snapshot.tree, first - 1, old_last + 1) is None


def breaks_document(snapshot: Snapshot, start: int, end: int, text: str, seconds: float = CHECK_SECONDS) -> bool:
    """Whether a text in place of [start, end) makes a valid document invalid; in an invalid one, as `breaks`."""
    if snapshot.tree is None or snapshot.tree.root_node.has_error:
        return breaks(snapshot, start, end, text)
    parsed = _parsed(snapshot, start, end, text, seconds=seconds)
    return parsed is not None and parsed.root_node.has_error


def is_within_error(snapshot: Snapshot, start: int, end: int) -> bool:
    """Whether [start, end) is inside a syntax error."""
    if snapshot.tree is None:
        return False
    first, last = snapshot.source.byte_of(start), snapshot.source.byte_of(end)
    node = snapshot.tree.root_node.descendant_for_byte_range(first, last)
    while node is not None and not node.is_error:
        node = node.parent
    return node is not None


def mends(snapshot: Snapshot, start: int, end: int, text: str) -> bool:
    """Whether a text in place of [start, end) makes a document with errors valid."""
    if snapshot.tree is None or not snapshot.tree.root_node.has_error:
        return False
    parsed = _parsed(snapshot, start, end, text)
    return parsed is not None and not parsed.root_node.has_error


def _parsed(
    snapshot: Snapshot, start: int, end: int, text: str, reach: int | None = None, seconds: float = CHECK_SECONDS
) -> Tree | None:
    """The tree with a text in place of [start, end); None for plain text, and when parsing takes too long.

    `reach`: bytes after the text that are enough; None for all.
    """
    if snapshot.tree is None:
        return None
    old = snapshot.source
    new = old.replace(start, end, text)
    tree = edited_tree(snapshot.tree, old, new, start, end)
    last = None if reach is None else new.byte_of(start + len(text)) + reach
    return parse(parser(snapshot.language_id), new, tree, seconds, last)


def _first_within(tree: Tree, start: int, end: int) -> int | None:
    """The first byte of the first error or missing token between start and end, both excluded.

    A cursor reaches the children there directly; `Node.children` creates all of them, 7,000 in a file of 20,000 lines.
    """
    found: int | None = None
    cursor = tree.walk()
    node = tree.root_node
    while True:
        if node.has_error and start <= node.end_byte and node.start_byte < end:
            if (node.is_error or node.is_missing) and start < node.start_byte and node.end_byte < end:
                found = node.start_byte if found is None else min(found, node.start_byte)
            if cursor.goto_first_child_for_byte(max(0, start - 1)) is not None:
                node = _at(cursor)
                continue
        while node.start_byte >= end or not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return found
            node = _at(cursor)
        node = _at(cursor)


def _at(cursor: TreeCursor) -> Node:
    node = cursor.node
    assert node is not None
    return node
