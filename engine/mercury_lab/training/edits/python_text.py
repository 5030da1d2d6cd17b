"""Parse Python text with the standard library, and turn node positions into offsets."""

import ast
import warnings
from itertools import accumulate

from mercury_lab.training.edits.plan import TextSpan


def parses(text: str) -> bool:
    """Whether this Python can parse the text."""
    return parsed(text) is not None


def parsed(text: str) -> ast.Module | None:
    """The syntax tree; None if this Python cannot parse the text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in other people's strings
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class NodeOffsets:
    """Offsets of syntax-tree nodes in a text; the tree counts columns in bytes."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *accumulate(len(line) + 1 for line in text.encode().split(b"\n"))]
        self._chars: list[int] | None = None
        if not text.isascii():
            self._chars = [at for at, char in enumerate(text) for _ in char.encode()] + [len(text)]

    def at(self, line: int, column: int) -> int:
        """The offset of a line (from 1) and a column (in bytes)."""
        place = self._starts[line - 1] + column
        return self._chars[place] if self._chars else place

    def span(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg | ast.alias) -> TextSpan:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)
