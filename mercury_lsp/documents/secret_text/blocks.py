"""Finds lines of a text that show a secret, also of several lines: keys, values on the next line, joined strings."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from itertools import accumulate

from mercury_engine.text.lines import indent_of

from mercury_lsp.documents.secret_text.data import shapes
from mercury_lsp.documents.secret_text.keys import (
    KEYS,
    MIN_KEY_ROWS,
    is_image_row,
    is_key,
    key_row,
    key_tail,
)
from mercury_lsp.documents.secret_text.lines import (
    CODE_LANGUAGES,
    LINES,
    has_named_alone,
    has_word,
    is_secret_line,
    named,
    shows_password,
    suspicious_offsets,
)
from mercury_lsp.documents.secret_text.values import MIXED, WORDS_AND_NUMBER, is_password

BLOCKS = shapes("blocks")

CACHED_TEXTS = 1024
"""Texts, of some 500 characters each, whose secret lines are remembered: every key needs those near the cursor."""

REACH_LINES = 4
"""Lines around a text that matter for it: the end of a key, or the name of a separate value."""

MAX_REACH_CHARS = 1_600
"""Characters around a text that matter for it."""

MAX_JOINED_LINES, MAX_INDENT_CHARS = 6, 80
"""Lines that are read as one, for a value on the next line or a joined string, and the blanks before it."""

MAX_BLOCK_LINES = 40
"""Lines of a block, list or table that are examined."""

MAX_SHORT_WORDS = 6
"""A line with more words is a sentence."""

MAX_NAME_WORDS = 2
"""A column's name with more words describes a condition, as `must pass`."""

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")

_OPENERS, _CONTINUERS = frozenset("=:(|>,?+&-[{\"'\\"), frozenset("+.&<|~\"'`")
"""Last characters of a line whose value follows on the next one, and first characters of a continued string."""

_BLOCK_WORDS = ("if ", "elif ", "else", "for ", "while ", "case ", "when ", "def ", "class ", "} else")
"""They begin a line whose end opens a block, not a value."""

_Cut = tuple[int, int, str]
"""Start and end of a part of a text, and its replacement."""


def leads_on(above: str, language_id: str) -> bool:
    """Whether lines may make the next ones secret: they leave a value open, name it, or belong to a key.

    Outside code they may also mention an access.
    """
    last = above[above.rstrip().rfind("\n") + 1 :]
    if last.rstrip()[-1:] in _OPENERS or "----" in above or key_row(last):
        return True
    if language_id not in CODE_LANGUAGES and LINES.cue.search(above.lower()):
        return True
    return has_word(above) and any(map(_names_what_follows, map(str.rstrip, LINE.findall(above))))


def _names_what_follows(line: str) -> bool:
    """Whether a line has the name of a secret whose value is on another line."""
    named = has_named_alone(line) or BLOCKS.list_header.search(line) or BLOCKS.row.search(line)
    return has_word(line) and bool(named)


def is_led_to(text: str, below: str) -> bool:
    """Whether lines may make the ones before secret: they continue a string, name its value, or end a key."""
    if below.lstrip()[:1] in _CONTINUERS or text.rstrip()[-1:] in _OPENERS or "----" in below:
        return True
    if not below:
        return False
    first = below.splitlines()[0]
    return has_named_alone(first) or (key_row(first) and key_row(text[text.rstrip().rfind("\n") + 1 :]))


@lru_cache(CACHED_TEXTS)
def secret_lines(text: str, language_id: str) -> frozenset[int]:
    """The numbers of the lines that show a secret or a part of one."""
    lines = LINE.findall(text)
    starts = list(accumulate(map(len, lines), initial=0))
    suspects = {bisect_right(starts, offset) - 1 for offset in suspicious_offsets(text, language_id)}
    found = {number for number in suspects if is_secret_line(lines[number], language_id)}
    found = {number for number in found if not is_image_row(lines, number)}
    if "-----" in text or sum(map(key_row, lines)) >= MIN_KEY_ROWS or any(key_row(lines[number]) for number in found):
        found |= set(_key_lines(lines, frozenset(found)))
    if language_id not in CODE_LANGUAGES and BLOCKS.lone_key.match(text):
        found.add(0)
    found |= _values_apart(lines, suspects, language_id)
    for first, last, joined in _joined(text, [(starts[number], starts[number + 1]) for number in suspects]):
        if not found.issuperset(range(first, last + 1)) and is_secret_line(joined, language_id):
            found |= set(range(first, last + 1))
    return frozenset(found)


def _values_apart(lines: Sequence[str], suspects: Iterable[int], language_id: str) -> set[int]:
    """The lines with values whose names are on other lines: above them, right below, or heading their block."""
    found: set[int] = set()

    def add(pairs: Iterable[tuple[int, str]]) -> None:
        found.update(number for number, line in pairs if is_secret_line(line, language_id))

    for number in suspects:
        name, below = lines[number].rstrip(), _below(lines, number)
        if has_named_alone(name):
            apart = next((at for at in below if BLOCKS.other_item.match(lines[at])), len(lines))
            near = [*range(number + 1, min(number + 1 + REACH_LINES, apart)), *range(max(0, number - 1), number)]
            add((at, f"{name} {lines[at].strip()}") for at in near if BLOCKS.value_line.match(lines[at]))
            option, item = BLOCKS.option.search(name), BLOCKS.item.match(lines[below[0]]) if below else None
            if option and item:
                add([(below[0], f"{option[0]} {item['value']}")])
        if name.lstrip().startswith("chpasswd"):
            found |= {at for at in below if BLOCKS.user_line.match(lines[at])}
        if BLOCKS.hidden_block.search(name):
            found |= set(_entries_beside(lines, number))
        if BLOCKS.block_header.search(name):
            rows, header = _block_below(lines, number), name.rstrip("|>+-0123456789 \t")
            if any(is_secret_line(f"{header} {lines[row].strip()}", language_id) for row in rows[:2]):
                found |= set(rows)
        if BLOCKS.list_header.search(name):
            items = _while_matched(BLOCKS.item, lines, below)
            add((at, f"{name.rstrip('[{( ')} {item['value']}") for at, item in items)
        if language_id not in CODE_LANGUAGES and (BLOCKS.row.match(name) or BLOCKS.header.match(name)):
            add(_cells_below(lines, number))
        if language_id not in CODE_LANGUAGES and LINES.cue.search(name.lower()):
            least = WORDS_AND_NUMBER if BLOCKS.introduces.search(name) else MIXED
            found |= {at for at in below[:REACH_LINES] if shows_password(lines[at], True, _least(lines[at], least))}
    return found


def _below(lines: Sequence[str], number: int) -> range:
    return range(number + 1, min(number + 1 + MAX_BLOCK_LINES, len(lines)))


def _while_matched(
    shape: re.Pattern[str], lines: Sequence[str], below: Iterable[int]
) -> Iterator[tuple[int, re.Match[str]]]:
    for at in below:
        if (found := shape.match(lines[at])) is None:
            return
        yield at, found


def _entries_beside(lines: Sequence[str], number: int) -> Iterator[int]:
    """The lines with values in a block that one of its lines declares secret."""
    for steps in (_below(lines, number), range(number - 1, -1, -1)):
        for near in steps:
            if lines[near].startswith(("---", "}", "resource")):
                break
            entry = BLOCKS.entry.match(lines[near])
            if entry is not None and is_password(entry["value"]):
                yield near


def _cells_below(lines: Sequence[str], number: int) -> Iterator[tuple[int, str]]:
    """The cells of a table, each with the name of its column."""
    mark = next((mark for mark in ",;|\t" if mark in lines[number]), None)
    cells = lines[number].split(mark) if mark else lines[number].lstrip("# \t").split()
    names = [name.strip() if len(name.split()) <= MAX_NAME_WORDS else "" for name in cells]
    for below in _below(lines, number):
        cells = lines[below].split(mark)
        if not lines[below].isspace() and len(cells) != len(names):
            return
        yield from ((below, f"{name} = {cell.strip()}") for name, cell in zip(names, cells, strict=False))


def _least(line: str, least: int) -> int:
    """The certainty needed for a password below a line that mentions an access; higher in a sentence."""
    return least if len(line.split()) <= MAX_SHORT_WORDS else max(least, MIXED)


def _block_below(lines: Sequence[str], number: int) -> list[int]:
    """The lines below one that are indented deeper."""
    indent, rows = indent_of(lines[number]), list[int]()
    for below in _below(lines, number):
        if lines[below].strip() and indent_of(lines[below]) <= indent:
            break
        rows.append(below)
    return rows


def rows_of_data(text: str) -> frozenset[int]:
    """The lines of a text that are only base64."""
    return frozenset(number for number, line in enumerate(LINE.findall(text)) if key_row(line))


def _key_lines(lines: Sequence[str], found: Set[int]) -> Iterator[int]:
    """The lines between the marks of a key, its rows, and short lines beside them or its end mark."""
    is_inside, after_body = False, False
    rows: list[int] = []
    for number, line in enumerate(lines):
        if KEYS.key_start.search(line):
            is_inside = not KEYS.key_end.search(line)
        elif KEYS.key_end.search(line):
            is_inside = False
            for near in range(number - 1, max(-1, number - REACH_LINES), -1):
                if not key_tail(lines[near]):
                    break
                yield near
        elif BLOCKS.code.search(line):
            is_inside = False
        is_next = bool(rows) and len(lines[rows[-1]].strip()) == len(line.strip())
        rows = [*(rows if is_next else ()), number][-MIN_KEY_ROWS:] if key_row(line) else []
        is_known = number in found and key_row(line)
        is_body = (is_known or is_key(lines[row] for row in rows)) and not is_image_row(lines, number)
        if is_body:
            yield from rows
        if is_inside or is_body or (after_body and key_tail(line)):
            yield number
        after_body = is_body


def _joined(text: str, suspects: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, str]]:
    """Lines that are read as one: numbers of the first and the last, and their joined text.

    `suspects` are the starts and ends of lines that may name a secret.
    """
    cuts: list[_Cut] = [(found.start(), found.end(), "") for found in BLOCKS.join.finditer(text)]
    if "\\\n" in text or "\\\r" in text:
        cuts += [(found.start(), found.end(), "") for found in BLOCKS.continued.finditer(text)]
    if "concat" in text or ".join" in text:
        cuts += [(found.start(), found.end(), "") for found in BLOCKS.listed.finditer(text)]
    for start, end in suspects:
        line = LINES.template.sub("x", text[start:end]).strip()
        if line[-1:] in _OPENERS and not line.startswith(_BLOCK_WORDS):
            found = named(BLOCKS.next_line, text, start, end, end + MAX_INDENT_CHARS)
            cuts += [(each.start("break"), each.end(), " ") for each in found]
    group: list[_Cut] = []
    for cut in sorted(cuts):
        if group and _breaks(text[group[-1][1] : cut[0]]):
            yield _read_as_one(text, group)
            group = []
        if not group or cut[0] >= group[-1][1]:
            group.append(cut)
    if group:
        yield _read_as_one(text, group)


def _read_as_one(text: str, cuts: Sequence[_Cut]) -> tuple[int, int, str]:
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
