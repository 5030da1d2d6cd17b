"""Items of lists as text: the tokens of a line, the names in which two items differ, the elements between brackets."""

import re

from mercury_engine.places.candidates import KEYWORDS
from mercury_engine.text.brackets import CLOSING, OPENING, code_outside_strings
from mercury_engine.text.common_prefix import common_prefix

_TOKEN = re.compile(r"\"[^\"]*\"|'[^']*'|[^\W\d]\w*|\d[\w.]*|\s+|.")
NAME = re.compile(r"[^\W\d]\w*")
_TYPES = frozenset(("bool", "boolean", "char", "double", "float", "int", "long", "string", "str", "unsigned"))
COMMENTS = ("#", "//", "/*", "*", "--", '"""')


def names_apart(older: str, newer: str) -> list[tuple[str, str]]:
    """The names in which two items differ that are alike: of the same shape, or equal before or behind the names."""
    ours, theirs = tokens(older), tokens(newer)
    if not ours or not theirs or older == newer or older.startswith(COMMENTS) or newer.startswith(COMMENTS):
        return []
    if shape(older) == shape(newer):
        pairs = dict.fromkeys(pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1])
        return [(old, new) for old, new in map(_unquoted, pairs) if _is_item(old) and _is_item(new)]
    if ours[1:2] == theirs[1:2] == [":"] and _is_item(ours[0]) and _is_item(theirs[0]):
        return [(ours[0], theirs[0])]
    for old_tokens, new_tokens in ((ours, theirs), (ours[::-1], theirs[::-1])):
        same = common_prefix(old_tokens, new_tokens)
        if 0 < same < min(len(ours), len(theirs)) and _is_item(old_tokens[same]) and _is_item(new_tokens[same]):
            return [(old_tokens[same], new_tokens[same])]
    return []


def _unquoted(pair: tuple[str, str]) -> tuple[str, str]:
    return pair[0].strip("\"'"), pair[1].strip("\"'")


def _is_item(token: str) -> bool:
    return bool(NAME.fullmatch(token)) and token not in KEYWORDS and len(token) > 2


def kind(token: str) -> str:
    """`s` for a string, `0` for a number, `n` for a name or a type; any other token is its own kind."""
    if token[0] in "\"'":
        return "s"
    if token[0].isdigit():
        return "0"
    return "n" if NAME.fullmatch(token) and (token not in KEYWORDS or token in _TYPES) else token


def tokens(text: str) -> list[str]:
    """Strings, names, numbers and single characters, without blanks."""
    return [token for token in _TOKEN.findall(text) if not token.isspace()]


def shape(text: str) -> list[str]:
    """The kinds of the tokens; lines of one shape differ in names and values only."""
    return [kind(token) for token in tokens(text)]


def is_whole(bare: str) -> bool:
    """Whether a line is a whole item: a statement, or an element of a list with one per line."""
    depth = 0
    for at in code_outside_strings(bare)[0]:
        depth += (bare[at] in OPENING) - (bare[at] in CLOSING)
        if depth < 0:
            return False
    return depth == 0 and not bare.endswith((":", "then", "do"))


def lists_on(line: str) -> list[tuple[str, list[tuple[int, int, str]]]]:
    """The lists on a line by their opening brackets: start, end and text of the elements, without blanks around."""
    opened: list[tuple[int, list[int]]] = []
    found: list[tuple[str, list[tuple[int, int, str]]]] = []
    for at in code_outside_strings(line)[0]:
        character = line[at]
        if character in OPENING:
            opened.append((at, [at]))
        elif opened and character == ",":
            opened[-1][1].append(at)
        elif opened and character in CLOSING:
            start, cuts = opened.pop()
            pieces = zip(cuts, [*cuts[1:], at], strict=True)
            found.append((line[start], [piece for a, b in pieces if (piece := _bare(line, a + 1, b))[2]]))
    return found


def _bare(line: str, start: int, end: int) -> tuple[int, int, str]:
    text = line[start:end]
    start += len(text) - len(text.lstrip())
    return start, start + len(text.strip()), text.strip()
