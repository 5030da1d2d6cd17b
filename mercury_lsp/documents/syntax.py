"""Does a fill parse where it stands? Answered by an incremental parse of the document with the fill in it."""

import threading

from tree_sitter import Node, Parser, Tree

from mercury_lsp.documents.chunked_text import encode
from mercury_lsp.documents.document import Snapshot, edited, parse
from mercury_lsp.documents.languages import new_parser

CHECK_SECONDS = 0.01
"""A check that takes longer finds nothing: a late suggestion is worse than an unchecked one."""

_thread = threading.local()


def first_error(snapshot: Snapshot, offset: int, text: str) -> int | None:
    """Where in a text, put at offset, a syntax error begins that the document did not have there; None if nowhere.

    Errors that reach the text's end do not count: what is begun there may be finished later. For any thread.
    """
    if snapshot.tree is None or not text.strip():
        return None
    if (parsed := _parsed(snapshot, snapshot.tree, offset, offset, text)) is None:
        return None
    start = snapshot.source.byte_of(offset)
    error = _first_within(parsed, start, start + len(encode(text)))
    return None if error is None else _characters(text, error - start)


def breaks(snapshot: Snapshot, start: int, end: int, text: str) -> bool:
    """Whether a text in place of that between two offsets has a syntax error, at its ends too, where there was none."""
    if snapshot.tree is None or (parsed := _parsed(snapshot, snapshot.tree, start, end, text)) is None:
        return False
    first, old_last = snapshot.source.byte_of(start), snapshot.source.byte_of(end)
    last = first + len(encode(text))
    # One byte more on either side, for there errors are counted that lie within.
    is_wrong_now = _first_within(parsed, first - 1, last + 1) is not None
    return is_wrong_now and _first_within(snapshot.tree, first - 1, old_last + 1) is None


def _parsed(snapshot: Snapshot, tree: Tree, start: int, end: int, text: str) -> Tree | None:
    """The tree with a text in place of that between two offsets; None when it takes too long."""
    old = snapshot.source
    tree = edited(tree, old, start, end, text)
    return parse(_parser(snapshot.language_id), old.replace(start, end, text), tree, CHECK_SECONDS)


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
