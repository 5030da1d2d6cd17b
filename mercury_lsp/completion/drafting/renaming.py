"""Learns which names differ between two similar pieces of code and applies the difference to further text."""

import re
from functools import lru_cache

from mercury_engine.text.lines import equal_ends

_WORD = re.compile(r"\w+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|_+|\w")


def are_same_kind(one: str, other: str) -> bool:
    """Whether both tokens are names, or both are numbers."""
    return bool(_WORD.match(one) and _WORD.match(other)) and one[0].isdigit() == other[0].isdigit()


class Renaming:
    """Maps words of one piece of code to the words in the same positions of another."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}
        self._parts: dict[str, str] = {}
        self._changes = False

    def learn(self, old: str, new: str) -> bool:
        """Map `old` to `new`; False, and nothing learned, if `old` is mapped to something else already.

        If one part of the name differs (`set_width`, `set_height`), the part is mapped too, in every case style.
        """
        if self._words.setdefault(old, new) != new:
            return False
        if old != new:
            self._changes = True
            self._parts = _differing_part(old, new) | self._parts
        return True

    def adopt(self, other: "Renaming") -> None:
        """Add the mappings of another renaming for words that this one does not know."""
        if other._changes:
            self._changes = True
            self._words = other._words | self._words
            self._parts = other._parts | self._parts

    def apply(self, text: str) -> str:
        """The text with every mapped word replaced."""
        return _WORD.sub(lambda found: self._renamed(found[0]), text) if self._changes else text

    def _renamed(self, word: str) -> str:
        if word in self._words:
            return self._words[word]
        if not self._parts:
            return word
        return "".join(self._parts.get(part, part) for part in _PARTS.findall(word))


def affects(old: str, new: str, text: str) -> bool:
    """Whether renaming `old` to `new` would change the text."""
    if old not in text and not any(part in text for part in _differing_part(old, new)):
        return False
    renaming = Renaming()
    renaming.learn(old, new)
    return renaming.apply(text) != text


@lru_cache(1024)
def _differing_part(old: str, new: str) -> dict[str, str]:
    """The single part in which two names differ, mapped to its replacement in every case style; otherwise empty."""
    ours, theirs = _PARTS.findall(old), _PARTS.findall(new)
    first, last = equal_ends(ours, theirs)
    ours, theirs = (parts[first : len(parts) - last] for parts in (ours, theirs))
    if len(ours) != 1 or len(theirs) != 1:
        return {}
    styles = (str.capitalize, str.upper, str.lower, str)
    return {style(ours[0]): style(theirs[0]) for style in styles}
