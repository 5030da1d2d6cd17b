"""The text that a change replaced, to be looked for elsewhere."""

import re
from dataclasses import dataclass
from functools import lru_cache

from mercury_engine.places.situation import LineChange

MAX_CORE_CHARS = 120
"""Characters; a longer text is not looked for."""

CACHED_CHANGES = 256

_LEFT = re.compile(r"\w*\W*$")


@dataclass(frozen=True, slots=True)
class Core:
    """The old text of a change without what old and new begin and end with, in whole words, and the word and the signs
    before it on its line; stripped, and empty in a pure insertion or deletion."""

    old: str
    left: str


_NO_CORE = Core("", "")


@lru_cache(CACHED_CHANGES)
def core_of(change: LineChange) -> Core:
    old, new = "".join(change.removed), "".join(change.inserted)
    if not old or not new:
        return _NO_CORE
    most = min(len(old), len(new))
    start = next((n for n in range(most) if old[n] != new[n]), most)
    while start and _is_word(old[start - 1]):
        start -= 1
    end = next((n for n in range(most - start) if old[-1 - n] != new[-1 - n]), most - start)
    while end and _is_word(old[-end]):
        end -= 1
    middle = old[start : len(old) - end]
    left = _LEFT.search(old[old.rfind("\n", 0, start) + 1 : start])
    return Core(middle.strip() if len(middle) <= MAX_CORE_CHARS else "", left[0].strip() if left else "")


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
