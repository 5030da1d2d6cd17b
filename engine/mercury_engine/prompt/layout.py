"""The amount and order of text that the reader sees around a gap; shared by training and the server."""

from collections.abc import Sequence

from mercury_engine.prompt.comment_marks import comment_line

PREFIX_CHARS = 2400
SUFFIX_CHARS = 1200
"""Characters before and after the cursor's chunk; training and the server both use these."""


def path_line(path: str) -> str:
    """What the comment line that names a file says."""
    return f"path: {path}"


def path_block(path: str, language: str) -> str:
    """The far block that names the file: a comment line."""
    return comment_line(path_line(path), language)


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
