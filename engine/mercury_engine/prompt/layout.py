"""Blocks around a gap, for training and evaluation; the server lays out open documents by the same rules."""

from collections.abc import Sequence

from mercury_engine.prompt.chunking import split
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


def window(
    text: str, start: int, end: int, prefix_chars: int = PREFIX_CHARS, suffix_chars: int = SUFFIX_CHARS
) -> tuple[list[str], str, list[str]]:
    """Far blocks, near prefix and suffix blocks around the gap text[start:end], from the text near it."""
    reach = max(0, start - 2 * prefix_chars)
    before = text[reach:start]
    if reach:
        before = before[before.find("\n") + 1 :]
    after = text[end : end + 2 * suffix_chars]
    return around(split(before + after), len(before), prefix_chars, suffix_chars)


def around(chunks: list[str], cursor: int, prefix_chars: int, suffix_chars: int) -> tuple[list[str], str, list[str]]:
    """Far blocks, near prefix and suffix blocks around a cursor, from the chunks of one text; sizes in characters.

    A cursor at the start of a chunk belongs to the chunk before it.
    """
    position = number = 0
    while number + 1 < len(chunks) and position + len(chunks[number]) < cursor:
        position += len(chunks[number])
        number += 1
    here = chunks[number] if chunks else ""
    near, head = here[: cursor - position], here[cursor - position :]
    far = _within(chunks[:number][::-1], prefix_chars)[::-1]
    following = _within(chunks[number + 1 :], suffix_chars)
    return far, near, [head, *following] if head else following


def rest_and_below(suffix: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits suffix blocks into the rest of the cursor's line and the blocks below it.

    The blocks below do not change while that line is typed, so the reader, which reads from left to right, sees them
    first: in front of the far blocks, those next to the cursor last.
    """
    if not suffix:
        return [], []
    head, *following = suffix
    end = head.find("\n") + 1 or len(head)
    return [head[:end]], [block for block in (head[end:], *following) if block]


def _within(chunks: list[str], budget: int) -> list[str]:
    """The first chunks that together fit the budget, in characters."""
    kept = []
    for chunk in chunks:
        budget -= len(chunk)
        if budget < 0:
            break
        kept.append(chunk)
    return kept
