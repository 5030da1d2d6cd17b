"""What counts as right, and what a perfect user accepts. The same rules for every way to fill a gap."""

import re

from mercury_engine.api import FillRequest

_WORD = re.compile(r"\w")


def exact(text: str, truth: str) -> bool:
    """Equal up to blanks at the end."""
    return text.rstrip() == truth.rstrip()


def fitted(text: str, request: FillRequest) -> str:
    """The text up to where it goes on with what stands behind the gap anyway, as an editor's client cuts it.

    That is the rest of the cursor's line, or the next line that is not blank when it holds a word.
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
    """Whether the rest of the line must not stand there twice; closing brackets may, while something is open."""
    line = begun + head + rest
    surplus = sum(map(line.count, ")]}")) > sum(map(line.count, "([{"))
    return surplus or bool(_WORD.search(rest)) or not any(map(rest.count, ")]}"))


def keeps(suggestion: str, rest: str) -> bool:
    """Whether nothing in a suggestion is wrong: a line as far as it goes, the first of several to its end."""
    first, broken, _ = suggestion.partition("\n")
    return exact(first, rest) if broken else bool(first.strip()) and rest.startswith(first.rstrip())


def accepted(suggestion: str, rest: str) -> str:
    """What a perfect user takes of a suggestion when `rest` is still to be typed on the line; "" for nothing.

    The first line when it is right to the end of the line, else the longest right prefix of whole words, of at
    least one word. The end of a begun word counts as a word.
    """
    first = suggestion.partition("\n")[0].rstrip()
    if exact(first, rest):
        return first
    size = 0
    while size < min(len(first), len(rest)) and first[size] == rest[size]:
        size += 1
    while size and any(_inside_word(text, size) for text in (first, rest)):
        size -= 1
    return first[:size] if _WORD.search(first[:size]) else ""


def _inside_word(text: str, at: int) -> bool:
    """Whether a word of the text goes on across a place in it."""
    return 0 < at < len(text) and bool(_WORD.match(text[at - 1])) and bool(_WORD.match(text[at]))
