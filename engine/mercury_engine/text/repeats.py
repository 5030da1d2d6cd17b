"""Where a text of several lines starts to repeat itself, as models do if they miss its end."""

import re

LONGEST_BLOCK = 16
"""Most lines of a block that is recognised when it stands a second time, blank ones included."""

MOST_ALIKE = 3
"""Most lines in a row with the same words: of `print(add(1, 2))` and `print(add(3, 4))` the fourth is a repeat."""

_WORD = re.compile(r"[^\W\d_]+")


def repeat_start(lines: list[str], checked: int = 0) -> int | None:
    """The first line of the first repeat: of a block that stands right above it; None without one.

    A block has a word. Blocks of several lines are compared without white space at their lines' ends. `checked`: number
    of lines at the start in which no repeat ends.
    """
    bare = [line.strip() for line in lines]
    for end in range(max(2, checked + 1), len(lines) + 1):
        for size in range(1, min(LONGEST_BLOCK, end // 2) + 1):
            start = end - size
            texts = lines if size == 1 else bare
            if texts[start - size : start] == texts[start:end] and any(map(_words, texts[start:end])):
                return start
        if end > MOST_ALIKE and _are_alike(lines[end - MOST_ALIKE - 1 : end]):
            return end - 1
    return None


def repeat_begun(lines: list[str]) -> int:
    """Number of lines at the end that may be the beginning of a repeat of those right above them."""
    bare = [line.strip() for line in lines]
    return max((_begun(bare, size) for size in range(2, min(LONGEST_BLOCK, len(lines)) + 1)), default=0)


def _begun(lines: list[str], size: int) -> int:
    """The same for a block of `size` lines."""
    count = 0
    while count < size - 1 and len(lines) - count > size and lines[-1 - count] == lines[-1 - count - size]:
        count += 1
    return count


def _are_alike(lines: list[str]) -> bool:
    words = {_words(line) for line in lines}
    return len(words) == 1 and () not in words


def _words(line: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(line))
