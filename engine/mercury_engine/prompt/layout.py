"""The text that a model reads around a gap, as training and the server lay it out: its amount, order and comments."""

from collections.abc import Sequence
from typing import NamedTuple

PREFIX_CHARS = 2400
SUFFIX_CHARS = 1200
"""Characters before and after the cursor's chunk; training and the server both use these."""


class CommentMarks(NamedTuple):
    """What a comment line starts and ends with; `closing` is empty where the line break ends it."""

    opening: str
    closing: str = ""

    def line(self, text: str) -> str:
        """Text as one comment line with its line break."""
        return f"{self.opening}{text}{self.closing}\n"


_HASHED = ("python", "shell", "shellscript", "sh", "bash", "yaml", "toml", "plaintext")
_SLASHES = CommentMarks("// ")
_MARKS = {
    **dict.fromkeys(_HASHED, CommentMarks("# ")),
    "lua": CommentMarks("-- "),
    "html": CommentMarks("<!-- ", " -->"),
    "css": CommentMarks("/* ", " */"),
}


def comment_marks(language: str) -> CommentMarks:
    """The marks of an LSP languageId or a language of the corpus; slashes if it is not listed."""
    return _MARKS.get(language, _SLASHES)


def path_line(path: str) -> str:
    """What the comment line that names a file says."""
    return f"path: {path}"


def path_block(path: str, language: str) -> str:
    """The far block that names the file: a comment line."""
    return comment_marks(language).line(path_line(path))


def rest_and_below(suffix: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits suffix blocks into the rest of the cursor's line and the blocks below it.

    The blocks below do not change while the line is typed, so the causal reader sees them first, in front of the far
    blocks.
    """
    if not suffix:
        return [], []
    head, *following = suffix
    end = head.find("\n") + 1 or len(head)
    return [head[:end]], [block for block in (head[end:], *following) if block]
