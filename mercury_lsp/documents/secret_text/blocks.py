"""Which lines of a text show a secret, also one of several lines: a key, a value on the next line, joined strings."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

from mercury_lsp.documents.secret_text.keys import (
    KEY_END,
    KEY_START,
    MIN_KEY_ROWS,
    is_image_row,
    is_key,
    key_body,
    key_row,
    key_tail,
)
from mercury_lsp.documents.secret_text.keywords import CODE_LANGUAGES, NAMED_AT_END, has_named_alone
from mercury_lsp.documents.secret_text.lines import has_word, is_secret_line, suspicious_offsets
from mercury_lsp.documents.secret_text.values import is_password

CACHED_TEXTS = 1024
"""Texts, of some 500 characters each, whose secret lines are remembered: those near the cursor are needed at every key,
what a key made of them only until the next one."""

REACH_LINES = 4
"""Lines around a text that decide about its own: the end of a key, or the name of a value that stands apart."""

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


_VALUE_LINE = re.compile(
    r"[ \t]*(?:-[ \t]+)?\\?(?:[\"']?(?:default|value|val|content|data|string|example)\w{0,8}\\?[\"']?[ \t]*(?:=>|[:=])"
    r"|<(?:string|value)>|[\w.]{0,20}send(?:line)?[ (])",
    re.IGNORECASE,
)
"""The start of a line with a value whose name stands on a line of its own, as in lists of environment variables."""

_BLOCK_HEADER = re.compile(r"[:=][ \t]*[|>][+-]?\d?[ \t]*\Z")
"""The end of a line of YAML whose value is the indented lines below."""

_LIST_HEADER = re.compile(r"(?:s|list|key)[\"']?[ \t]*(?::|:?=)[ \t]*[\[{(]?[ \t]*\Z", re.IGNORECASE)
"""The end of a line that begins a list of secrets."""

_ITEM = re.compile(r"[ \t]+(?:-[ \t]+)?(?P<value>[\"'][^\"':=]{4,}[\"']?|(?<=- )(?:\w+=)?[^\s\"':=]{4,}),?\s*\Z")
"""An item of a list, on a line of its own."""

_ROW = re.compile(r"[|\w .-]*[,;|\t][\w .,;|\t-]*\Z")
"""A line with the names of a table's columns."""

_USER_LINE = re.compile(r"\s+(?:-\s+)?[\w-]+:\S{4,}\s*\Z")
"""A user and a password, as in a list of cloud-init."""

_CODE = re.compile(r"[(){}\[\]<>;]|\s=\s")
"""What no line of a key has: after it a mark of a key's start was only mentioned."""

MAX_BLOCK_LINES = 40
"""Most lines of a block, a list or a table that are examined."""


MAX_NAME_WORDS = 2
"""Most words of a column's name: what has more describes conditions, as `must pass`."""

_HIDDEN_BLOCK = re.compile(r"\bkind:\s*[\"']?Secret[\"']?\s*\Z|\btype[\"']?\s*[=:]\s*[\"']?SecureString", re.IGNORECASE)
"""A line that makes the values beside it secret, whatever they are called."""

_ENTRY = re.compile(
    r"\s*[\"']?(?!(?:name|namespace|type|kind|apiversion|metadata)\b)[\w.-]+[\"']?\s*[:=]\s*[\"']?(?P<value>[^\s\"']{6,})",
    re.IGNORECASE,
)


def leads_on(above: str) -> bool:
    """Whether lines may decide about what follows them: they leave a value open, name it, or are of a key."""
    last = above[above.rstrip().rfind("\n") + 1 :]
    if last.rstrip()[-1:] in _OPENERS or "----" in above or key_row(last):
        return True
    return has_word(above) and any(map(_names_what_follows, map(str.rstrip, LINE.findall(above))))


def _names_what_follows(line: str) -> bool:
    """Whether a line has the name of a secret whose value stands on another one."""
    if not has_word(line):
        return False
    return has_named_alone(line) or any(each.search(line) for each in (_LIST_HEADER, _ROW))


def is_led_to(text: str, below: str) -> bool:
    """Whether lines may decide about what precedes them: they go on with a string, name its value, or end a key."""
    if below.lstrip()[:1] in _CONTINUERS or text.rstrip()[-1:] in _OPENERS or "----" in below:
        return True
    if not below:
        return False
    first = below.splitlines()[0]
    return has_named_alone(first) or (key_row(first) and key_row(text[text.rstrip().rfind("\n") + 1 :]))


@lru_cache(CACHED_TEXTS)
def secret_lines(text: str, language_id: str) -> frozenset[int]:
    """The numbers of the lines of a text that show a secret or a part of one."""
    lines = LINE.findall(text)
    starts = list(accumulate(map(len, lines), initial=0))
    suspects = {bisect_right(starts, offset) - 1 for offset in suspicious_offsets(text, language_id)}
    found = {number for number in suspects if is_secret_line(lines[number], language_id)}
    found = {number for number in found if not is_image_row(lines, number)}
    if "-----" in text or sum(map(key_row, lines)) >= MIN_KEY_ROWS or any(key_body(lines[number]) for number in found):
        found |= set(_key_lines(lines))
    found |= _values_apart(lines, suspects, language_id)
    for first, last, joined in _joined(text, [(starts[number], starts[number + 1]) for number in suspects]):
        if not found.issuperset(range(first, last + 1)) and is_secret_line(joined, language_id):
            found |= set(range(first, last + 1))
    return frozenset(found)


def _values_apart(lines: Sequence[str], suspects: Iterable[int], language_id: str) -> set[int]:
    """The lines with the values of names that stand on other lines: below it or right above it, or in a block below."""
    found: set[int] = set()
    for number in suspects:
        name = lines[number].rstrip()
        if has_named_alone(name):
            near = [*range(number + 1, min(number + 1 + REACH_LINES, len(lines))), *range(max(0, number - 1), number)]
            pairs = ((other, f"{name} {lines[other].strip()}") for other in near if _VALUE_LINE.match(lines[other]))
            found |= {other for other, pair in pairs if is_secret_line(pair, language_id)}
            found |= _argument_below(lines, number, language_id)
        if name.lstrip().startswith("chpasswd"):
            found |= {below for below in range(number, len(lines)) if _USER_LINE.match(lines[below])}
        if _HIDDEN_BLOCK.search(name):
            found |= set(_entries_beside(lines, number))
        if _BLOCK_HEADER.search(name):
            found |= set(_block_below(lines, number, language_id))
        if _LIST_HEADER.search(name):
            found |= set(_items_below(lines, number, language_id))
        if language_id not in CODE_LANGUAGES and _ROW.match(name):
            found |= set(_columns_below(lines, number, language_id))
    return found


def _entries_beside(lines: Sequence[str], number: int) -> Iterator[int]:
    """The lines with values in the block around one that says that they are secret."""
    for steps in (range(number + 1, min(number + MAX_BLOCK_LINES, len(lines))), range(number - 1, -1, -1)):
        for near in steps:
            if lines[near].startswith(("---", "}", "resource")):
                break
            entry = _ENTRY.match(lines[near])
            if entry is not None and is_password(entry["value"]):
                yield near


def _argument_below(lines: Sequence[str], number: int, language_id: str) -> set[int]:
    """The line below an option that stands on a line of its own, if it is the option's secret."""
    option = re.search(r"--[\w-]+(?=[\"']?,?\s*\Z)", lines[number])
    item = _ITEM.match(lines[number + 1]) if option is not None and number + 1 < len(lines) else None
    is_secret = option and item and is_secret_line(f"{option[0]} {item['value']}", language_id)
    return {number + 1} if is_secret else set()


def _items_below(lines: Sequence[str], number: int, language_id: str) -> Iterator[int]:
    """The items of a list that a secret's name begins, if they are secrets."""
    header = lines[number].rstrip().rstrip("[{( \t")
    for below in range(number + 1, min(number + 1 + MAX_BLOCK_LINES, len(lines))):
        if (item := _ITEM.match(lines[below])) is None:
            return
        if is_secret_line(f"{header} {item['value']}", language_id):
            yield below


def _columns_below(lines: Sequence[str], number: int, language_id: str) -> Iterator[int]:
    """The rows of a table that has a column of secrets."""
    mark = next(mark for mark in ",;|\t" if mark in lines[number])
    names = [name if len(name.split()) <= MAX_NAME_WORDS else "" for name in lines[number].split(mark)]
    for below in range(number + 1, min(number + 1 + MAX_BLOCK_LINES, len(lines))):
        if lines[below].isspace():
            continue
        cells = lines[below].split(mark)
        if len(cells) != len(names):
            return
        pairs = (f"{name.strip()} = {cell.strip()}" for name, cell in zip(names, cells, strict=True))
        if any(is_secret_line(pair, language_id) for pair in pairs):
            yield below


def _block_below(lines: Sequence[str], number: int, language_id: str) -> Iterator[int]:
    """The lines of a block of YAML if it begins with a secret."""
    indent = len(lines[number]) - len(lines[number].lstrip())
    rows = []
    for below in range(number + 1, min(number + 1 + MAX_BLOCK_LINES, len(lines))):
        if lines[below].strip() and len(lines[below]) - len(lines[below].lstrip()) <= indent:
            break
        rows.append(below)
    header = lines[number].rstrip().rstrip("|>+-0123456789 \t")
    if any(is_secret_line(f"{header} {lines[row].strip()}", language_id) for row in rows[:2]):
        yield from rows


def rows_of_data(text: str) -> frozenset[int]:
    """The lines of a text that are rows of base64 and nothing else."""
    return frozenset(number for number, line in enumerate(LINE.findall(text)) if key_row(line))


def _key_lines(lines: Sequence[str]) -> Iterator[int]:
    """The lines between the marks of a key, its rows, and short ones beside them or its end mark."""
    is_inside, after_body = False, False
    rows: list[int] = []
    for number, line in enumerate(lines):
        if KEY_START.search(line):
            is_inside = not KEY_END.search(line)
        elif KEY_END.search(line):
            is_inside = False
            yield from _tails_before(lines, number)
        elif _CODE.search(line):
            is_inside = False
        rows = _rows_to(lines, rows, number)
        is_body = (key_body(line) or is_key(lines[row] for row in rows)) and not is_image_row(lines, number)
        if is_body:
            yield from rows
        if is_inside or is_body or (after_body and key_tail(line)):
            yield number
        after_body = is_body


def _rows_to(lines: Sequence[str], rows: Sequence[int], number: int) -> list[int]:
    """The rows of one length that end with a line; `rows` are those that end with the line above it."""
    if not key_row(lines[number]):
        return []
    is_next = bool(rows) and len(lines[rows[-1]].strip()) == len(lines[number].strip())
    return [*rows, number][-MIN_KEY_ROWS:] if is_next else [number]


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
