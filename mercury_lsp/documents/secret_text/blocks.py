"""Finds lines of a text that show a secret, also of several lines: keys, values on the next line, joined strings."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import chain, takewhile
from operator import itemgetter

from mercury_engine.text.lines import indent_of

from mercury_lsp.documents.secret_text import values
from mercury_lsp.documents.secret_text.data import LIMITS, shapes
from mercury_lsp.documents.secret_text.lines import (
    CODE_LANGUAGES,
    KEYS,
    LINES,
    has_named_alone,
    is_secret_line,
    is_suspect,
    named,
    shows_password,
)

BLOCKS = shapes("blocks")

CACHED_TEXTS = 1024
"""Texts, of some 500 characters each, whose secret lines are remembered: every key needs those near the cursor."""

REACH_LINES, MAX_REACH_CHARS = 4, 1_600
"""Lines and characters around a text that matter for it: the end of a key, or the name of a separate value."""

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")

_OPENERS, _CONTINUERS = frozenset("=:(|>,?+&-[{\"'\\"), frozenset("+.&<|~\"'`")
"""Last characters of a line whose value follows on the next one, and first characters of a continued string."""

_CUT, _BREAK = "\0", "\1"
"""Stand for the text between two parts of a string, and for a line break there."""


def leads_on(above: str, language_id: str) -> bool:
    """Whether lines may make the next ones secret: they leave a value open, name it, or belong to a key.

    Outside code, words about access do, too.
    """
    last = above[above.rstrip().rfind("\n") + 1 :]
    has_cue = language_id not in CODE_LANGUAGES and LINES.cue.search(above.lower())
    if last.rstrip()[-1:] in _OPENERS or "----" in above or has_cue or key_row(last):
        return True
    lines = [line.rstrip() for line in LINE.findall(above) if LINES.any_word.search(line.lower())]
    return any(has_named_alone(each) or BLOCKS.list_header.search(each) or BLOCKS.row.search(each) for each in lines)


def is_led_to(text: str, below: str) -> bool:
    """Whether lines may make the ones before secret: they continue a string, name its value, or end a key."""
    if below.lstrip()[:1] in _CONTINUERS or text.rstrip()[-1:] in _OPENERS or "----" in below:
        return True
    first = below.splitlines()[0] if below else ""
    return has_named_alone(first) or (key_row(first) and key_row(text[text.rstrip().rfind("\n") + 1 :]))


@lru_cache(CACHED_TEXTS)
def secret_lines(text: str, language_id: str) -> frozenset[int]:
    """The numbers of the lines that show a secret or a part of one."""
    lines = LINE.findall(text)
    suspects = [at for at, line in enumerate(lines) if is_suspect(line, language_id)]
    rows = {at: row["body"] for at, line in enumerate(lines) if (row := KEYS.key_row.match(line))}
    has_repeats = {at for at in rows if KEYS.repeated.search(lines[at])}
    images = {at for at in rows if not has_repeats.isdisjoint((at - 1, at, at + 1))}  # keys never repeat characters
    found = {at for at in suspects if at not in images and is_secret_line(lines[at], language_id)}
    if rows or "-----" in text:
        found |= set(_key_lines(lines, rows, images, found))
    if language_id not in CODE_LANGUAGES and BLOCKS.lone_key.match(text):
        found.add(0)
    apart = (each for at in suspects for each in _values_apart(lines, at, language_id))
    for numbers, line in chain(apart, _joined(lines, suspects)):
        if line is None or is_secret_line(line, language_id):
            found.update(numbers)
    return frozenset(found)


def _values_apart(lines: Sequence[str], number: int, language_id: str) -> Iterator[tuple[Iterable[int], str | None]]:
    """The lines with values whose names are in a line: above, right below, or in the block that it heads.

    Returns their numbers with the name and a value as one line, which shows whether they are secret; None: they are.
    """
    name, all_below = lines[number].rstrip(), range(number + 1, len(lines))
    below = all_below[: LIMITS.block_lines]
    if has_named_alone(name):
        apart = next((at for at in below if BLOCKS.other_item.match(lines[at])), len(lines))
        near = range(max(0, number - 1), min(number + 1 + REACH_LINES, apart))
        yield from (((at,), f"{name} {lines[at].strip()}") for at in near if BLOCKS.value_line.match(lines[at]))
    if name.lstrip().startswith("chpasswd"):
        yield [at for at in below if BLOCKS.user_line.match(lines[at])], None
    if BLOCKS.hidden_block.search(name):
        entries = ((at, BLOCKS.entry.match(line)) for at, line in enumerate(lines))
        yield [at for at, entry in entries if entry and values.is_password(entry["value"])], None
    if BLOCKS.block_header.search(name):
        inside = takewhile(lambda at: not lines[at].strip() or indent_of(lines[at]) > indent_of(name), all_below)
        rows, header = list(inside), name.rstrip("|>+-0123456789 \t")
        yield from ((rows, f"{header} {lines[row].strip()}") for row in rows[:2])
    if (option := BLOCKS.option.search(name)) or BLOCKS.list_header.search(name):
        head = option[0] if option else name.rstrip("[{( ")
        items = takewhile(itemgetter(1), ((at, BLOCKS.item.match(lines[at])) for at in below[: 1 if option else None]))
        yield from (((at,), f"{head} {item['value']}") for at, item in items if item)
    if language_id in CODE_LANGUAGES:
        return
    if BLOCKS.row.match(name) or BLOCKS.header.match(name):
        yield from _cells(lines, number, below)
    if LINES.cue.search(name.lower()):
        least = values.WORDS_AND_NUMBER if BLOCKS.introduces.search(name) else values.MIXED
        for at in below[:REACH_LINES]:
            is_short = len(lines[at].split()) <= LIMITS.short_words
            if shows_password(lines[at], True, least if is_short else values.MIXED):
                yield (at,), None


def _cells(lines: Sequence[str], header: int, below: Iterable[int]) -> Iterator[tuple[Iterable[int], str]]:
    """The cells of a table, each with the name of its column."""
    mark = next((mark for mark in ",;|\t" if mark in lines[header]), None)
    cells = lines[header].split(mark) if mark else lines[header].lstrip("# \t").split()
    names = [name.strip() if len(name.split()) <= LIMITS.name_words else "" for name in cells]
    for at in below:
        cells = lines[at].split(mark)
        if not lines[at].isspace() and len(cells) != len(names):
            return
        yield from (((at,), f"{name} = {cell.strip()}") for name, cell in zip(names, cells, strict=False))


def key_row(line: str) -> bool:
    """Whether a line is only a row of base64, of any usual length."""
    return KEYS.key_row.match(line) is not None


def _is_key(bodies: Sequence[str]) -> bool:
    """Whether successive rows of base64 of one length are a key: enough of them, and random."""
    joined = "".join(bodies)
    is_mixed = all(any(map(kind, joined)) for kind in values.KINDS)
    is_data = any(map(values.is_wordy, bodies)) or KEYS.repeated.search(joined)
    return len(bodies) >= LIMITS.key_rows and is_mixed and not is_data


def _key_lines(lines: Sequence[str], rows: Mapping[int, str], images: Set[int], found: Set[int]) -> Iterator[int]:
    """The lines between the marks of a key, its rows, and short lines beside them or its end mark.

    `rows`: the rows of base64; `images`: those of images and fonts.
    """
    is_inside, after_body = False, False
    run: list[int] = []
    for number, line in enumerate(lines):
        if KEYS.key_start.search(line):
            is_inside = not KEYS.key_end.search(line)
        elif KEYS.key_end.search(line):
            is_inside = False
            above = range(number - 1, max(-1, number - REACH_LINES), -1)
            yield from takewhile(lambda at: KEYS.key_tail.match(lines[at]), above)
        elif BLOCKS.code.search(line):
            is_inside = False
        is_next = bool(run) and len(lines[run[-1]].strip()) == len(line.strip())
        run = [*(run if is_next else ()), number][-LIMITS.key_rows :] if number in rows else []
        is_body = bool(run) and number not in images and (number in found or _is_key([rows[row] for row in run]))
        if is_body:
            yield from run
        if is_inside or is_body or (after_body and KEYS.key_tail.match(line)):
            yield number
        after_body = is_body


def _joined(lines: Sequence[str], suspects: Iterable[int]) -> Iterator[tuple[range, str]]:
    """Lines that are read as one, because a string or value continues: their numbers, and their joined text."""
    parts = [line.replace(_CUT, " ").replace(_BREAK, " ") for line in lines]
    for at in suspects:
        name = LINES.template.sub("x", parts[at]).strip()
        if name[-1:] in _OPENERS and not BLOCKS.opens.match(name) and at + 1 < len(parts):
            below = parts[at + 1][: LIMITS.indent_chars].rstrip("\r\n")
            if found := next(named(BLOCKS.next_line, parts[at] + below), None):
                parts[at + 1] = parts[at + 1][found.end() - len(parts[at]) :]
                parts[at] = f"{parts[at][: found.start('break')]} {_CUT}{_BREAK}"
    text = "".join(parts)
    for shape in (BLOCKS.join, BLOCKS.continued, *((BLOCKS.listed,) if "concat" in text or ".join" in text else ())):
        text = shape.sub(lambda cut: _CUT + _BREAK * (cut["break"] is not None), text)
    number = 0
    for line in LINE.findall(text):
        breaks = line.count(_BREAK)
        if _CUT in line:
            joined = line.replace(_CUT, "").replace(_BREAK, "").rstrip("\r\n")
            yield range(number, number + min(breaks, LIMITS.joined_lines) + 1), joined
        number += breaks + 1
