"""What one line's text alone says, kept for lines that are seen again."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from mercury_engine.places.situation import WORD

CACHED_LINES = 8_192
"""Lines whose words and look are kept."""

LOOK_FEATURES = ("is_blank", "is_comment", "is_closing", "is_import", "is_decorator", "is_jump", "is_condition")

_COMMENT = ("#", "//", "/*", "*", "--", '"""')
_CLOSING = ("}", ")", "];", "};", "});", "end", "]")
_IMPORT = ("import ", "from ", "use ", "#include", "require", "package ", "using ")
_DECORATOR = ("@", "#[", "[[")
_JUMP = ("return", "throw", "raise", "yield", "break", "continue")
_CONDITION = ("if", "} else", "else", "elif", "for", "while", "switch", "case", "match", "try", "when", "default")

_TOKEN = re.compile(r"\w+")
_FIRST = re.compile(r"\W*\w*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@dataclass(frozen=True, slots=True)
class Line:
    """A line without the white space around it."""

    text: str
    words: frozenset[str]
    parts: frozenset[str]
    """The parts of the words in lower case: `readAll` and `read_all` have two."""
    first: str
    """The first word, with the signs before it."""
    shape: str
    """The signs, with every word made equal."""
    look: tuple[float, ...]
    """The values of LOOK_FEATURES."""

    @property
    def is_import(self) -> bool:
        return bool(self.look[LOOK_FEATURES.index("is_import")])

    @property
    def is_comment(self) -> bool:
        return bool(self.look[LOOK_FEATURES.index("is_comment")])


@lru_cache(CACHED_LINES)
def seen(line: str) -> Line:
    """The line, looked at once."""
    text = line.strip()
    words = frozenset(WORD.findall(line))
    first = _FIRST.match(text)
    looks = (
        not text, text.startswith(_COMMENT), text in _CLOSING, text.startswith(_IMPORT), text.startswith(_DECORATOR),
        text.startswith(_JUMP), text.startswith(_CONDITION),
    )  # fmt: skip
    parts = frozenset().union(*map(parts_of, words))
    return Line(text, words, parts, first[0] if first else "", _TOKEN.sub("w", text), tuple(map(float, looks)))


def with_text(lines: Iterable[str]) -> list[Line]:
    """The lines that aren't blank."""
    return [line for line in map(seen, lines) if line.text]


@lru_cache(CACHED_LINES)
def parts_of(name: str) -> frozenset[str]:
    return frozenset(part.lower() for part in _PART.findall(name))
