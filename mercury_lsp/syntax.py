"""Does a fill parse where it stands? Answered by an incremental parse of the document with the fill in it."""

import threading

from tree_sitter import Node, Parser, Tree

from mercury_lsp.documents import Snapshot, parse
from mercury_lsp.languages import new_parser

PARSE_SECONDS = 0.01
"""A check that takes longer finds nothing: a late suggestion is worse than an unchecked one."""

_thread = threading.local()


def first_error(snapshot: Snapshot, offset: int, text: str) -> int | None:
    """Where in a text, put at offset, a syntax error begins that the document did not have there; None if nowhere.

    Errors that reach the text's end do not count: what is begun there may be finished later. For any thread.
    """
    if snapshot.tree is None or not text.strip():
        return None
    filled = snapshot.source.replace(offset, offset, text)
    end = offset + len(text)
    tree = snapshot.tree.copy()
    at = snapshot.source.byte_of(offset), snapshot.source.point_of(offset)
    tree.edit(at[0], at[0], filled.byte_of(end), at[1], at[1], filled.point_of(end))
    parsed = parse(_parser(snapshot.language_id), filled, tree, PARSE_SECONDS)
    if parsed is None:
        return None
    error = _first_within(parsed, at[0], filled.byte_of(end))
    if error is None:
        return None
    return _characters(text, error - at[0])


def _first_within(tree: Tree, start: int, end: int) -> int | None:
    """The byte where the first error or missing token begins that lies between start and end, both excluded."""
    found: int | None = None
    pending = [tree.root_node]
    while pending:
        node = pending.pop()
        if not node.has_error or node.end_byte < start or node.start_byte >= end:
            continue
        if _is_wrong(node) and start < node.start_byte and node.end_byte < end:
            found = node.start_byte if found is None else min(found, node.start_byte)
        pending += node.children
    return found


def _is_wrong(node: Node) -> bool:
    return node.is_error or node.is_missing


def _characters(text: str, size: int) -> int:
    """How many characters of a text its first bytes spell."""
    return len(text.encode("utf-8", "surrogatepass")[:size].decode("utf-8", "ignore"))


def _parser(language_id: str) -> Parser:
    """This thread's parser; one is not to be used from two threads."""
    parsers: dict[str, Parser] = _thread.__dict__.setdefault("parsers", {})
    if language_id not in parsers:
        parsers[language_id] = new_parser(language_id)
    return parsers[language_id]
