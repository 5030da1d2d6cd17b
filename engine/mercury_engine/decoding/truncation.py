"""Truncation: the part of an unfinished text that may be shown, without half a word or a dangling bracket or quote."""

from mercury_engine.api import PART_OF_A_CHARACTER
from mercury_engine.text.brackets import CLOSER_OF, open_brackets, string_starts

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
