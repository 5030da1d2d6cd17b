"""Judge fills: what counts as right, and what a perfect user accepts; the rules are the same for every filler."""

import re

from mercury_engine.api import FillRequest

_WORD = re.compile(r"\w")

STUB_CHARS = 10
"""Characters from which a text that ends before the line does is worth a look; `function ` has 8 without its blank."""


REWARD_TAKEN, REWARD_NOT_TAKEN = 0.75, -0.25
"""What a shown text is worth of which something is taken, and another: one taken in four is worth showing."""


def reward(taken: int, not_taken: int) -> float:
    """What so many shown texts are worth."""
    return REWARD_TAKEN * taken + REWARD_NOT_TAKEN * not_taken


def exact(text: str, truth: str) -> bool:
    """Whether the texts are equal except for trailing blanks."""
    return text.rstrip() == truth.rstrip()


def fitted(text: str, request: FillRequest) -> str:
    """The text up to where it repeats the text after the gap, as an editor's client cuts it.

    The text after the gap is the rest of the cursor's line, or else the next non-blank line if it holds a word.
    """
    rest, _, below = "".join(request.suffix).partition("\n")
    begun = "".join((*request.far, request.near)).rpartition("\n")[2]
    head, *more = text.split("\n")
    if rest.strip():
        return head[: -len(rest)] if head.endswith(rest) and _doubled(begun, head, rest) else text
    next_line = next((line.rstrip() for line in below.split("\n") if line.strip()), "")
    for number, line in enumerate((begun + head, *more)):
        if _WORD.search(next_line) and line.rstrip() == next_line:
            return "\n".join((head, *more)[:number]).rstrip()
    return text


def _doubled(begun: str, head: str, rest: str) -> bool:
    """Whether repeating the rest of the line is wrong; closing brackets may repeat while a bracket is open."""
    line = begun + head + rest
    surplus = sum(map(line.count, ")]}")) > sum(map(line.count, "([{"))
    return surplus or bool(_WORD.search(rest)) or not any(map(rest.count, ")]}"))


def keeps(suggestion: str, rest: str) -> bool:
    """Whether nothing in a suggestion is wrong: a single line as far as it goes, or the first of several in full."""
    first, broken, _ = suggestion.partition("\n")
    return exact(first, rest) if broken else bool(first.strip()) and rest.startswith(first.rstrip())


def is_stub(suggestion: str, rest: str) -> bool:
    """Whether a right suggestion ends before the line does, and is short."""
    first = suggestion.partition("\n")[0].strip()
    return len(first) < STUB_CHARS and not exact(suggestion.partition("\n")[0], rest)


def accepted(suggestion: str, rest: str) -> str:
    """The part of a suggestion that a perfect user accepts when `rest` is still to be typed; "" for nothing.

    That is the first line if it is right to its end, else the longest right prefix of whole words (at least one). The
    remainder of a partly typed word counts as a word.
    """
    first = suggestion.partition("\n")[0].rstrip()
    if exact(first, rest):
        return first
    size = 0
    while size < min(len(first), len(rest)) and first[size] == rest[size]:
        size += 1
    while size and any(is_inside_word(text, size) for text in (first, rest)):
        size -= 1
    return first[:size] if _WORD.search(first[:size]) else ""


def is_inside_word(text: str, at: int) -> bool:
    """Whether an offset lies inside a word of the text."""
    return 0 < at < len(text) and bool(_WORD.match(text[at - 1])) and bool(_WORD.match(text[at]))
