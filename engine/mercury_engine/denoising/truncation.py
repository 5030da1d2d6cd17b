"""What may be shown of a text that was given up before its end: whole words, and no bracket or quote left dangling."""

from mercury_engine.api import PART_OF_A_CHARACTER
from mercury_engine.text.brackets import CLOSER_OF, outside_strings, string_starts

_LOOSE = " \t.([{,=+-*/&|<:"
"""At the end of what is shown these would say nothing."""


def truncated(text: str, behind: str | None) -> str:
    """The part of an unfinished text to show; empty if there is no word in it.

    `behind` is the best guess for what would follow, "" for nothing, None if there is no guess. What it closes of the
    text's own brackets and quotes is shown too.
    """
    whole = text if behind is not None and not is_word_character(behind[:1]) else _whole_words(text)
    if not any(map(is_word_character, whole)):
        return ""
    return _without_loose_end(whole + _closing(whole, behind) if behind and whole == text else whole)


def word_start(text: str, place: int) -> int:
    """The place, or where the word begins that goes across it: a word is unsure as a whole."""
    while place and is_word_character(text[place - 1]) and is_word_character(text[place]):
        place -= 1
    return place


def is_word_character(character: str) -> bool:
    """Whether it is part of a word; the empty text is not."""
    return character.isalnum() or character in ("_", PART_OF_A_CHARACTER)


def _whole_words(text: str) -> str:
    """The text without a last word that may be unfinished."""
    cut = max((i for i, c in enumerate(text) if not is_word_character(c)), default=-1)
    return text[: cut + 1].rstrip(" \t") if cut + 1 < len(text) else text


def _without_loose_end(text: str) -> str:
    """The text up to its last word, or up to what closes something behind it."""
    while True:
        shorter = text.rstrip(_LOOSE)
        quote = _open(shorter)[1]
        if quote is not None and not any(map(is_word_character, shorter[quote:])):
            shorter = shorter[:quote].rstrip(shorter[quote])  # of three quotes the first two close each other
        if shorter == text:
            return text
        text = shorter


def _closing(text: str, behind: str) -> str:
    """The beginning of what follows that closes what the text itself has opened."""
    brackets, quote = _open(text)
    closed = ""
    if quote is not None:
        if behind[0] != text[quote]:
            return ""
        closed, behind = behind[0], behind[1:]
    for character in behind:
        if not brackets or character != CLOSER_OF[brackets.pop()]:
            break
        closed += character
    return closed


def _open(text: str) -> tuple[list[str], int | None]:
    """Brackets that the text opens outside strings and leaves open, and where a string begins that does not end."""
    brackets: list[str] = []
    for _, character, _ in outside_strings(text):
        if character in CLOSER_OF:
            brackets.append(character)
        elif brackets and character == CLOSER_OF[brackets[-1]]:
            brackets.pop()
    return brackets, string_starts(text)[-1]
