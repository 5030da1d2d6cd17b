"""Blocks around a gap in a text, by the rules by which the server lays out open documents."""

from mercury_engine.prompt.chunking import split
from mercury_engine.prompt.layout import PREFIX_CHARS, SUFFIX_CHARS, nearest


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
    far = nearest(chunks[:number][::-1], prefix_chars)[::-1]
    following = nearest(chunks[number + 1 :], suffix_chars)
    return far, near, [head, *following] if head else following
