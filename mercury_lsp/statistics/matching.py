"""How what was inserted compares with what was suggested."""

import re
from difflib import SequenceMatcher

_PIECE = re.compile(r"\w+|[^\w\s]")

_PAIRS = ("()", "[]", "{}", '""', "''", "``")
"""Editors put the second when the first is typed."""

_CLOSING = re.compile(r"[\s)\]}>'\"`;,:]*")
"""What editors add behind a text by themselves."""


def with_plain_breaks(text: str) -> str:
    """The text with line feeds only: some clients insert the document's own line breaks."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_keystroke(inserted: str) -> bool:
    """Whether one key may have inserted this: a character, a pair of brackets, a break with its indentation, a tab."""
    return len(inserted) <= 1 or inserted.isspace() or inserted in _PAIRS


def is_whole(inserted: str, suggested: str) -> bool:
    """Whether a text is the suggested one but for its white space and what an editor closes behind it."""
    there, wanted = "".join(inserted.split()), "".join(suggested.split())
    return bool(wanted) and there.startswith(wanted) and _CLOSING.fullmatch(there, len(wanted)) is not None


def share_left(accepted: str, now: str) -> float:
    """How much of an accepted text still stands in another, from 0 to 1, by words and marks; layout does not count."""
    if accepted == now:
        return 1.0
    before, after = _PIECE.findall(accepted), _PIECE.findall(now)
    if not before:  # nothing but white space
        return float(accepted in now)
    same = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    left = sum(len(piece) for block in same for piece in before[block.a : block.a + block.size])
    return left / sum(map(len, before))
