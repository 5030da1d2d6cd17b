"""Parses texts with tree-sitter, in one go or in slices, and moves the nodes of trees along with edits."""

import ctypes
import sys
from collections.abc import Callable, Generator
from time import perf_counter

from tree_sitter import Parser, Tree

from mercury_lsp.documents.chunked_text import ChunkedText, encode

PARSE_SLICE_SECONDS = 0.005
"""Length of a slice."""


def edited_tree(tree: Tree, old: ChunkedText, new: ChunkedText, start: int, end: int) -> Tree:
    """A copy of the tree of a text of which an edit of [start, end) made a new one: its nodes are moved, not parsed."""
    if old.slice(start - 1, start) == "\r":
        start -= 1  # `encode` reads it together with what follows
    byte, point = old.byte_and_point_of(start)
    old_byte, old_point = old.byte_and_point_of(end)
    new_byte, new_point = new.byte_and_point_of(end + new.length - old.length)
    tree = tree.copy()
    tree.edit(byte, old_byte, new_byte, point, old_point, new_point)
    return tree


def parse(
    parser: Parser, source: ChunkedText, previous: Tree | None, seconds: float, end: int | None = None
) -> Tree | None:
    """The tree of a text, parsed incrementally from an edited previous tree; None when time runs out.

    If the previous tree does not fit, the text is read only up to about the byte `end`.
    """
    if (tree := begin_or_resume(parser, source, _is_late_after(seconds), previous, end)) is None:
        parser.reset()  # otherwise it would resume where it stopped, whatever its next input
    return tree


def begin_or_resume(
    parser: Parser,
    source: ChunkedText,
    is_late: Callable[[int, bool], bool],
    previous: Tree | None = None,
    end: int | None = None,
) -> Tree | None:
    """The tree of a text, or None once `is_late` says so; the next call with the same text then resumes."""
    read, given = source.reader(end), list[bytes]()
    is_parsing = True

    def piece_at(byte: int, point: object) -> bytes:
        """The rest of the chunk there; the tree reads the text of its nodes from here, too."""
        piece = read(byte, point)
        if is_parsing:
            given.append(piece)
        return piece

    try:
        if previous is None:
            return parser.parse(piece_at, progress_callback=is_late)
        return parser.parse(piece_at, old_tree=previous, progress_callback=is_late)
    except ValueError:
        return None
    finally:
        is_parsing = False
        _release(given)


def _release(given: list[bytes]) -> None:
    """Return the references to the pieces of a text that a parse leaked, and empty the list.

    The binding (0.25 to 0.26.1) takes a reference to each piece and never gives it back, so every parse would leak what
    it reads: 76 bytes a key, and 2 MB when 2 MB are opened.
    """
    ours = encode("  ")
    while given:
        piece = given.pop()
        # Python shares empty and single bytes, so others may refer to them.
        if len(piece) > 1 and sys.getrefcount(piece) == sys.getrefcount(ours) + 1:
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(piece))


def parse_in_slices(parser: Parser, source: ChunkedText, seconds: float) -> Generator[None, None, Tree | None]:
    """As `parse`, with a pause after every `PARSE_SLICE_SECONDS` of work; the parser must do nothing else meanwhile.

    There is no previous tree: an incremental parse resumed many times returned another tree than an uninterrupted one.
    """
    spent = 0.0
    while spent < seconds:
        begun = perf_counter()
        if (tree := begin_or_resume(parser, source, _is_late_after(PARSE_SLICE_SECONDS))) is not None:
            return tree
        spent += perf_counter() - begun
        yield
    return None


def _is_late_after(seconds: float) -> Callable[[int, bool], bool]:
    deadline = perf_counter() + seconds
    return lambda _byte, _has_error: perf_counter() > deadline
