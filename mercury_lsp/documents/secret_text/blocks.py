"""Which lines of a text show a secret, also one of several lines: a key, a value on the next line, joined strings."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

from mercury_lsp.documents.secret_text.keys import KEY_END, KEY_START, key_body, key_tail
from mercury_lsp.documents.secret_text.keywords import NAMED_AT_END
from mercury_lsp.documents.secret_text.lines import is_secret_line, suspicious_offsets

REACH_LINES = 3
"""Lines around a text that decide about its own: the last line of a key, its checksum and its end."""

MAX_JOINED_LINES = 6
"""Lines that are read as one, for a value on the next line or put together from strings."""

MAX_INDENT_CHARS = 80
"""Blanks before a value on the next line."""

MAX_REACH_CHARS = 1_600
"""Characters around a text that decide about it."""

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")

_OPERATOR = r"(?:\+|\.{1,2}|&|<<|~|\|\|)?"
_JOIN = re.compile(
    rf"(?P<quote>[\"'`])(?<=[^\s\"'`(\[{{,=:].)s?[ \t]{{0,8}}{_OPERATOR}[ \t]{{0,8}}\\?"
    rf"(?:(?P<break>\r\n|\r|\n)[ \t]{{0,80}}(?://|#|\*|--)?[ \t]{{0,8}}{_OPERATOR})?"
    r"[ \t]{0,8}[bfruL]{0,2}(?P=quote)"
)
"""The end of one string and the start of the next one, which belong together."""

_OPENERS = frozenset("=:(|>,?+&-[{\"'\\")
"""Last characters of a line that leaves its value to the next one."""

_CONTINUERS = frozenset("+.&<|~\"'`")
"""First characters of a line that goes on with the string of the line above."""

_BLOCK_WORDS = ("if ", "elif ", "else", "for ", "while ", "case ", "when ", "def ", "class ", "} else")
"""Words that begin a line whose end opens a block, not a value."""

_CONTINUED = re.compile(r"(?<=[\w+/=-])\\(?P<break>(?:\r\n|\r|\n))[ \t]*(?=[\w+/=-])")
"""A break inside a string, with a backslash before it."""

_LISTED = re.compile(r"(?P<quote>[\"'])[ \t]*,[ \t]*(?:(?P<break>\r\n|\r|\n)[ \t]*)?(?P=quote)")
"""The border of two strings in a list; only `concat` makes them one."""

_NEXT_LINE = re.compile(
    NAMED_AT_END + r"(?P<break>[ \t]*\\?(?:\r\n|\r|\n)[ \t]*(?:(?://|#|--|\*)[ \t]*)?)", re.IGNORECASE
)
"""The end of a line that names a secret and leaves its value to the next one."""


def leads_on(above: str) -> bool:
    """Whether lines may decide about what follows them: they leave a value open, or are of a key."""
    last = above[above.rstrip().rfind("\n") + 1 :]
    return last.rstrip()[-1:] in _OPENERS or "----" in above or key_body(last)


def is_led_to(text: str, below: str) -> bool:
    """Whether lines may decide about what precedes them: they go on with a string, or end a key."""
    return below.lstrip()[:1] in _CONTINUERS or text.rstrip()[-1:] in _OPENERS or "----" in below


@lru_cache(maxsize=4096)
def secret_lines(text: str, language_id: str) -> frozenset[int]:
    """The numbers of the lines of a text that show a secret or a part of one."""
    lines = LINE.findall(text)
    starts = list(accumulate(map(len, lines), initial=0))
    suspects = {bisect_right(starts, offset) - 1 for offset in suspicious_offsets(text)}
    found = {number for number in suspects if is_secret_line(lines[number], language_id)}
    if "-----" in text or any(key_body(lines[number]) for number in found):
        found |= set(_key_lines(lines))
    for first, last, joined in _joined(text, [(starts[number], starts[number + 1]) for number in suspects]):
        if not found.issuperset(range(first, last + 1)) and is_secret_line(joined, language_id):
            found |= set(range(first, last + 1))
    return frozenset(found)


def _key_lines(lines: Sequence[str]) -> Iterator[int]:
    """The lines between the marks of a key, and short ones beside its body or its end mark."""
    is_inside, after_body = False, False
    for number, line in enumerate(lines):
        if KEY_START.search(line):
            is_inside = True
        elif KEY_END.search(line):
            is_inside = False
            yield from _tails_before(lines, number)
        is_body = key_body(line)
        if is_inside or is_body or (after_body and key_tail(line)):
            yield number
        after_body = is_body


def _tails_before(lines: Sequence[str], end: int) -> Iterator[int]:
    """The last line of a key and its checksum, before the mark that ends it."""
    for number in range(end - 1, max(-1, end - REACH_LINES), -1):
        if not key_tail(lines[number]):
            return
        yield number


def _joined(text: str, suspects: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, str]]:
    """Lines that are read as one: numbers of the first and the last, and their text without what parts it.

    `suspects` are the starts and ends of lines that may name a secret.
    """
    cuts = [*_cuts(text, _JOIN, "")]
    if "\\\n" in text or "\\\r" in text:
        cuts += _cuts(text, _CONTINUED, "")
    for start, end in suspects:
        line = text[start:end].strip()
        if line[-1:] in _OPENERS and not line.startswith(_BLOCK_WORDS):
            cuts += _cuts(text, _NEXT_LINE, " ", start, end + MAX_INDENT_CHARS)
    if "concat" in text or ".join" in text:
        cuts += _cuts(text, _LISTED, "")
    cuts.sort()
    group: list[tuple[int, int, str]] = []
    for cut in cuts:
        if group and not _is_one_line(text, group[-1][1], cut[0]):
            yield _read_as_one(text, group)
            group = []
        if not group or cut[0] >= group[-1][1]:
            group.append(cut)
    if group:
        yield _read_as_one(text, group)


def _cuts(
    text: str, pattern: re.Pattern[str], instead: str, start: int = 0, end: int | None = None
) -> Iterator[tuple[int, int, str]]:
    for found in pattern.finditer(text, start, len(text) if end is None else end):
        yield found.start("break") if instead else found.start(), found.end(), instead


def _is_one_line(text: str, start: int, end: int) -> bool:
    return "\n" not in text[start:end] and "\r" not in text[start:end]


def _read_as_one(text: str, cuts: Sequence[tuple[int, int, str]]) -> tuple[int, int, str]:
    start = max(text.rfind("\n", 0, cuts[0][0]), text.rfind("\r", 0, cuts[0][0])) + 1
    ends = [at for at in (text.find("\n", cuts[-1][1]), text.find("\r", cuts[-1][1])) if at >= 0]
    end = min(ends, default=len(text))
    first = _breaks(text[:start])
    last = first + min(_breaks(text[start:end]), MAX_JOINED_LINES)
    pieces, at = [], start
    for begin, after, instead in cuts:
        pieces += [text[at:begin], instead]
        at = after
    return first, last, "".join((*pieces, text[at:end]))


def _breaks(text: str) -> int:
    return len(re.findall(r"\r\n|\r|\n", text))
