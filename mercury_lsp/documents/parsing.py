"""Parses texts with tree-sitter, in one go or in slices, and moves the nodes of trees along with edits."""

import ctypes
import sys
from collections.abc import Callable, Generator
from time import perf_counter

from tree_sitter import Parser, Tree

from mercury_lsp.documents.chunked_text import ChunkedText, encode

PARSE_SLICE_SECONDS = 0.005
"""Length of a slice."""


def edited_tree(tree: Tree, source: ChunkedText, start: int, end: int, new: str) -> Tree:
    """A copy of the tree with `new` in place of [start, end): its nodes are moved, not parsed."""
    byte, point = source.byte_and_point_of(start)
    old_end = _end_of(byte, point, source.slice(start, end))
    new_end = _end_of(byte, point, new)
    tree = tree.copy()
    tree.edit(byte, old_end[0], new_end[0], point, old_end[1], new_end[1])
    return tree


def parse(
    parser: Parser, source: ChunkedText, previous: Tree | None, seconds: float, end: int | None = None
) -> Tree | None:
    """The tree of a text, parsed incrementally from an edited previous tree; None when time runs out.

    If the previous tree does not fit, the text is read only up to about the byte `end`.
    """
    deadline = perf_counter() + seconds

    def is_late(_byte: int, _has_error: bool) -> bool:
        return perf_counter() > deadline

    if (tree := begin_or_resume(parser, source, is_late, previous, end)) is None:
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
    pieces = _Pieces(source, end)
    try:
        if previous is None:
            return parser.parse(pieces, progress_callback=is_late)
        return parser.parse(pieces, old_tree=previous, progress_callback=is_late)
    except ValueError:
        return None
    finally:
        pieces.release()


class _Pieces:
    """A text as a parser reads it: called with a byte offset, returns the rest of the chunk there.

    The binding (0.25 to 0.26.1) takes a reference to each piece and never gives it back, so every parse would leak what
    it reads: 76 bytes a key, and 2 MB when 2 MB are opened.
    """

    def __init__(self, source: ChunkedText, end: int | None = None):
        self._read = source.reader(end)
        self._given: list[bytes] | None = []

    def __call__(self, byte: int, point: object) -> bytes:
        piece = self._read(byte, point)
        if self._given is not None:
            self._given.append(piece)
        return piece

    def release(self) -> None:
        """Return the references that the parse leaked; the tree still reads the text of its nodes from here."""
        given, self._given = self._given or [], None
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
    spent, deadline = 0.0, 0.0

    def is_late(_byte: int, _has_error: bool) -> bool:
        return perf_counter() > deadline

    while spent < seconds:
        begun = perf_counter()
        deadline = begun + PARSE_SLICE_SECONDS
        if (tree := begin_or_resume(parser, source, is_late)) is not None:
            return tree
        spent += perf_counter() - begun
        yield
    return None


def _end_of(byte: int, point: tuple[int, int], text: str) -> tuple[int, tuple[int, int]]:
    """The byte and point (row, column) where a text ends that starts at `byte` and `point`."""
    if not text:
        return byte, point
    encoded = encode(text)
    row, column = point
    if breaks := encoded.count(b"\n"):
        row, column = row + breaks, -1 - encoded.rfind(b"\n")
    return byte + len(encoded), (row, column + len(encoded))
