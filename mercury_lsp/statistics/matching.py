"""Compares inserted text with suggested text."""

import re
from difflib import SequenceMatcher

_PIECE = re.compile(r"\w+|[^\w\s]")

_PAIRS = ("()", "[]", "{}", '""', "''", "``")
"""Editors insert the second character when the user types the first."""

_CLOSING = re.compile(r"[\s)\]}>'\"`;,:]*")
"""What editors add after a text on their own."""


def with_plain_breaks(text: str) -> str:
    """The text with LF line breaks: some clients insert the document's own kind."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_keystroke(inserted: str) -> bool:
    """Whether one key may have inserted this: a character, a bracket pair, a tab, a line break with indentation."""
    return len(inserted) <= 1 or inserted.isspace() or inserted in _PAIRS


def is_whole(inserted: str, suggested: str) -> bool:
    """Whether the inserted text is the suggested one, except for white space and what an editor closes after it."""
    actual, wanted = "".join(inserted.split()), "".join(suggested.split())
    return bool(wanted) and actual.startswith(wanted) and _CLOSING.fullmatch(actual, len(wanted)) is not None


def share_left(accepted: str, now: str) -> float:
    """The share, from 0 to 1, of an accepted text's words and marks that still stand; layout does not count."""
    if accepted == now:
        return 1.0
    before, after = _PIECE.findall(accepted), _PIECE.findall(now)
    if not before:  # nothing but white space
        return float(accepted in now)
    same = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    left = sum(len(piece) for block in same for piece in before[block.a : block.a + block.size])
    return left / sum(map(len, before))
