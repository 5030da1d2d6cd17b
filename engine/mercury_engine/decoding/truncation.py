"""Truncation: the part of an unfinished text that may be shown, without half a word or a dangling bracket or quote.

An expression is not cut either: where a text may end is judged by its characters and those that follow.
"""

from mercury_engine.api import PART_OF_A_CHARACTER
from mercury_engine.text.brackets import (
    CLOSER_OF,
    CLOSING,
    CLOSING_MARKS,
    bracket_step,
    has_open_bracket,
    open_brackets,
    string_starts,
)

SUFFIX_CHARS = 8
"""Characters after the gap that the rest of a text must begin with to be taken for them."""

_LOOSE = " \t.([{,=+-*/&|<:"
"""Characters dropped from the end, where they say nothing."""


def truncated(text: str, after: str | None) -> str:
    """The part of an unfinished text to show; empty if there is no word in it.

    `after` is the best guess for the text that would follow: "" for the end, None if there is no guess. The part of it
    that closes brackets and quotes of the text is shown too.
    """
    whole = text if after is not None and not is_word_character(after[:1]) else _whole_words(text)
    if not any(map(is_word_character, whole)):
        return ""
    return _without_loose_end(whole + _closing(whole, after) if after and whole == text else whole)


def word_start(text: str, position: int) -> int:
    """The position, or the start of the word across it: a word is unsure as a whole."""
    while position and is_word_character(text[position - 1]) and is_word_character(text[position]):
        position -= 1
    return position


def is_word_character(character: str) -> bool:
    """Whether the character is part of a word; the empty text is not."""
    return character.isalnum() or character in ("_", PART_OF_A_CHARACTER)


def ends_whole(text: str, rest: str, line_prefix: str, line_suffix: str = "") -> bool:
    """Whether a text may end before `rest`, the model's continuation: at the end of a line, statement or argument.

    `line_prefix` and `line_suffix` are the rest of the cursor's line. It may not end inside a bracket or string that it
    opens, before an operator, a call's parentheses or a word, or before an unknown rest. A string that was open before
    the text may end after any word.
    """
    opened, quote, was_open = _opened(text, line_prefix)
    if opened or (quote and not was_open):
        return False
    if quote or text.endswith(";"):
        return True
    if line_suffix.strip() and rest.startswith(line_suffix[:SUFFIX_CHARS].rstrip()):
        return True
    after = rest.lstrip(" \t")
    if after[:1] == ",":
        return after[1:].lstrip(" \t")[:1] in ("\n", "\r") or has_open_bracket(line_prefix)
    if after[:1] == ":":
        return after[1:2] not in (":", "=")
    return bool(after) and (after[0] in "\r\n;" or after[0] in CLOSING)


def closing_of(rest: str, line_suffix: str) -> str:
    """The brackets and marks that alone are left of the line in `rest`; "" where the document has text there."""
    line, line_break, _ = rest.partition("\n")
    return line.rstrip() if line_break and not line.strip(CLOSING_MARKS + " \t\r") and not line_suffix.strip() else ""


def _whole_words(text: str) -> str:
    """The text without a last word that may be unfinished."""
    cut = next((i for i in range(len(text) - 1, -1, -1) if not is_word_character(text[i])), -1)
    return text[: cut + 1].rstrip(" \t") if cut + 1 < len(text) else text


def _without_loose_end(text: str) -> str:
    """The text up to its last word, or up to a closing bracket or quote after it."""
    while True:
        shorter = text.rstrip(_LOOSE)
        quote = string_starts(shorter)[-1]
        if quote is not None and not any(map(is_word_character, shorter[quote:])):
            shorter = shorter[:quote].rstrip(shorter[quote])  # of three quotes, the first two close each other
        if shorter == text:
            return text
        text = shorter


def _closing(text: str, after: str) -> str:
    """The beginning of `after` that closes brackets and quotes that the text has opened."""
    brackets, quote = open_brackets(text), string_starts(text)[-1]
    closed = ""
    if quote is not None:
        if after[0] != text[quote]:
            return ""
        closed, after = after[0], after[1:]
    for character in after:
        if not brackets or character != CLOSER_OF[brackets.pop()]:
            break
        closed += character
    return closed


def _opened(text: str, line_prefix: str) -> tuple[bool, bool, bool]:
    """Whether a bracket of the text is open at its end, whether a string is, and whether that began before the text."""
    line, start = line_prefix + text, len(line_prefix)
    starts, depth = string_starts(line), 0
    for at in range(start, len(line)):
        if starts[at] is None and starts[at + 1] is None:
            depth = max(0, depth + bracket_step(line[at]))
    return depth > 0, starts[-1] is not None, starts[-1] is not None and starts[-1] < start
