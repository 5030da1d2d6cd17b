"""The text that a model reads around a gap, as training and the server lay it out: its amount, order and comments.

The budget of tokens is the text nearest to the gap, as much as the model handles well.
"""

from collections.abc import Sequence, Sized
from typing import NamedTuple, TypeVar

TokenIds = tuple[int, ...]

Block = TypeVar("Block", bound=Sized)

PREFIX_CHARS = 2400
SUFFIX_CHARS = 1200
"""Characters before and after the cursor's chunk; training and the server both use these."""

NEAR_TOKENS = 2048
"""Longest near prefix, in tokens; a CPU prefills about 1,000 per second."""

NEAR_HOP_TOKENS = 512
"""Tokens dropped at once when the near prefix is too long, so that typing rarely moves its start."""

REST_TOKENS = 512
"""Most tokens of the rest of the cursor's line."""

SEGMENT_TOKENS = 4096
"""Most tokens of the far blocks, and of the suffix."""

LOOKUP_BLOCKS = 1024
"""Most blocks of lookup text."""

LOOKUP_TOKENS = 1 << 16
"""Most tokens of lookup text."""

NEW_LOOKUP_BLOCKS = 64
"""Most lookup blocks tokenized for a request with a deadline; takes some 10 ms."""


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


def near_part(ids: Sequence[int]) -> TokenIds:
    """The end of a near prefix that fits the budget."""
    surplus = max(0, len(ids) - NEAR_TOKENS)
    return tuple(ids[surplus + -surplus % NEAR_HOP_TOKENS :])


def far_part(blocks: Sequence[TokenIds]) -> list[TokenIds]:
    """The last far blocks that together fit the budget."""
    return nearest(blocks[::-1], SEGMENT_TOKENS)[::-1]


def suffix_part(blocks: Sequence[TokenIds]) -> list[TokenIds]:
    """The first suffix blocks that together fit the budget; if the first alone is too long, its beginning."""
    return nearest([blocks[0][:SEGMENT_TOKENS], *blocks[1:]], SEGMENT_TOKENS) if blocks else []


def nearest(blocks: Sequence[Block], room: int) -> list[Block]:
    """The longest run of first blocks, of tokens or characters, that together fit the room."""
    kept: list[Block] = []
    for block in blocks:
        room -= len(block)
        if room < 0:
            break
        kept.append(block)
    return kept
