"""Finds lines of a text that show a secret, also of several lines: keys, values on the next line, joined strings."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from itertools import accumulate, takewhile
from operator import itemgetter

from mercury_engine.text.lines import indent_of

from mercury_lsp.documents.secret_text.data import LIMITS, shapes
from mercury_lsp.documents.secret_text.lines import (
    CODE_LANGUAGES,
    KEYS,
    LINES,
    has_named_alone,
    has_word,
    is_secret_line,
    named,
    shows_password,
    suspicious_offsets,
)
from mercury_lsp.documents.secret_text.values import MIXED, WORDS_AND_NUMBER, is_password, is_wordy

BLOCKS = shapes("blocks")

CACHED_TEXTS = 1024
"""Texts, of some 500 characters each, whose secret lines are remembered: every key needs those near the cursor."""

REACH_LINES, MAX_REACH_CHARS = 4, 1_600
"""Lines and characters around a text that matter for it: the end of a key, or the name of a separate value."""

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")

_OPENERS, _CONTINUERS = frozenset("=:(|>,?+&-[{\"'\\"), frozenset("+.&<|~\"'`")
"""Last characters of a line whose value follows on the next one, and first characters of a continued string."""


def leads_on(above: str, language_id: str) -> bool:
    """Whether lines may make the next ones secret: they leave a value open, name it, or belong to a key.

    Outside code they may also mention an access.
    """
    last = above[above.rstrip().rfind("\n") + 1 :]
    if last.rstrip()[-1:] in _OPENERS or "----" in above or key_row(last):
        return True
    if language_id not in CODE_LANGUAGES and LINES.cue.search(above.lower()):
        return True
    lines = filter(has_word, map(str.rstrip, LINE.findall(above)))
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
    starts = list(accumulate(map(len, lines), initial=0))
    suspects = {bisect_right(starts, offset) - 1 for offset in suspicious_offsets(text, language_id)}
    found = {at for at in suspects if is_secret_line(lines[at], language_id) and not _is_image_row(lines, at)}
    if "-----" in text or sum(map(key_row, lines)) >= LIMITS.key_rows or any(key_row(lines[at]) for at in found):
        found |= set(_key_lines(lines, frozenset(found)))
    if language_id not in CODE_LANGUAGES and BLOCKS.lone_key.match(text):
        found.add(0)
    for number in suspects:
        found |= _values_apart(lines, number, language_id)
    for numbers, joined in _joined(text, lines, starts, suspects):
        if not found.issuperset(numbers) and is_secret_line(joined, language_id):
            found |= set(numbers)
    return frozenset(found)


def _values_apart(lines: Sequence[str], number: int, language_id: str) -> set[int]:
    """The lines with values whose names are in a line: above, right below, or in the block that it heads."""
    name, all_below = lines[number].rstrip(), range(number + 1, len(lines))
    below = all_below[: LIMITS.block_lines]
    found, pairs = set[int](), list[tuple[int, str]]()
    if has_named_alone(name):
        apart = next((at for at in below if BLOCKS.other_item.match(lines[at])), len(lines))
        near = [*range(number + 1, min(number + 1 + REACH_LINES, apart)), *range(max(0, number - 1), number)]
        pairs += [(at, f"{name} {lines[at].strip()}") for at in near if BLOCKS.value_line.match(lines[at])]
        option, item = BLOCKS.option.search(name), BLOCKS.item.match(lines[below[0]]) if below else None
        pairs += [(below[0], f"{option[0]} {item['value']}")] if option and item else []
    if name.lstrip().startswith("chpasswd"):
        found |= {at for at in below if BLOCKS.user_line.match(lines[at])}
    if BLOCKS.hidden_block.search(name):
        found |= {*_entries(lines, below), *_entries(lines, range(number - 1, -1, -1))}
    if BLOCKS.block_header.search(name):
        inside = takewhile(lambda at: not lines[at].strip() or indent_of(lines[at]) > indent_of(name), all_below)
        rows, header = list(inside), name.rstrip("|>+-0123456789 \t")
        if any(is_secret_line(f"{header} {lines[row].strip()}", language_id) for row in rows[:2]):
            found |= set(rows)
    if BLOCKS.list_header.search(name):
        items = takewhile(itemgetter(1), ((at, BLOCKS.item.match(lines[at])) for at in below))
        pairs += [(at, f"{name.rstrip('[{( ')} {item['value']}") for at, item in items if item]
    if language_id not in CODE_LANGUAGES:
        if BLOCKS.row.match(name) or BLOCKS.header.match(name):
            pairs += _cells(lines, number, below)
        if LINES.cue.search(name.lower()):
            least = WORDS_AND_NUMBER if BLOCKS.introduces.search(name) else MIXED
            nearby = ((at, len(lines[at].split()) <= LIMITS.short_words) for at in below[:REACH_LINES])
            found |= {at for at, is_short in nearby if shows_password(lines[at], True, least if is_short else MIXED)}
    return found | {at for at, line in pairs if is_secret_line(line, language_id)}


def _entries(lines: Sequence[str], near: Iterable[int]) -> Iterator[int]:
    """The lines with values in a block that one of its lines declares secret."""
    for at in near:
        if lines[at].startswith(("---", "}", "resource")):
            return
        if (entry := BLOCKS.entry.match(lines[at])) and is_password(entry["value"]):
            yield at


def _cells(lines: Sequence[str], header: int, below: Iterable[int]) -> Iterator[tuple[int, str]]:
    """The cells of a table, each with the name of its column."""
    mark = next((mark for mark in ",;|\t" if mark in lines[header]), None)
    cells = lines[header].split(mark) if mark else lines[header].lstrip("# \t").split()
    names = [name.strip() if len(name.split()) <= LIMITS.name_words else "" for name in cells]
    for at in below:
        cells = lines[at].split(mark)
        if not lines[at].isspace() and len(cells) != len(names):
            return
        yield from ((at, f"{name} = {cell.strip()}") for name, cell in zip(names, cells, strict=False))


def key_row(line: str) -> bool:
    """Whether a line is only a row of base64, of any usual length."""
    return KEYS.key_row.match(line) is not None


def rows_of_data(text: str) -> frozenset[int]:
    """The lines of a text that are only base64."""
    return frozenset(number for number, line in enumerate(LINE.findall(text)) if key_row(line))


def _is_key(rows: Iterable[str]) -> bool:
    """Whether successive rows of base64 of one length are a key: enough of them, and random."""
    bodies = [found["body"] for row in rows if (found := KEYS.key_row.match(row))]
    joined = "".join(bodies)
    is_mixed = all(any(map(kind, joined)) for kind in (str.isupper, str.islower, str.isdigit))
    is_data = any(map(is_wordy, bodies)) or KEYS.repeated.search(joined)
    return len(bodies) >= LIMITS.key_rows and is_mixed and not is_data


def _is_image_row(lines: Sequence[str], number: int) -> bool:
    """Whether a row of base64 belongs to an image or font: it or a neighbour repeats characters as keys never do."""
    near = [line for line in lines[max(0, number - 1) : number + 2] if key_row(line)]
    return any(map(KEYS.repeated.search, near)) and key_row(lines[number])


def _is_key_tail(line: str) -> bool:
    """Whether a line may be the last one of a key in base64."""
    return KEYS.key_tail.match(line) is not None and any(map(str.isalnum, line))


def _key_lines(lines: Sequence[str], found: Set[int]) -> Iterator[int]:
    """The lines between the marks of a key, its rows, and short lines beside them or its end mark."""
    is_inside, after_body = False, False
    rows: list[int] = []
    for number, line in enumerate(lines):
        if KEYS.key_start.search(line):
            is_inside = not KEYS.key_end.search(line)
        elif KEYS.key_end.search(line):
            is_inside = False
            above = range(number - 1, max(-1, number - REACH_LINES), -1)
            yield from takewhile(lambda at: _is_key_tail(lines[at]), above)
        elif BLOCKS.code.search(line):
            is_inside = False
        is_next = bool(rows) and len(lines[rows[-1]].strip()) == len(line.strip())
        rows = [*(rows if is_next else ()), number][-LIMITS.key_rows :] if key_row(line) else []
        is_known = number in found and key_row(line)
        is_body = (is_known or _is_key(lines[row] for row in rows)) and not _is_image_row(lines, number)
        if is_body:
            yield from rows
        if is_inside or is_body or (after_body and _is_key_tail(line)):
            yield number
        after_body = is_body


def _joined(
    text: str, lines: Sequence[str], starts: Sequence[int], suspects: Iterable[int]
) -> Iterator[tuple[range, str]]:
    """Lines that are read as one: their numbers, and their joined text. `suspects` may name a secret."""
    cuts = [(*found.span(), "") for shape in _joins(text) for found in shape.finditer(text)]
    for number in suspects:
        line, end = LINES.template.sub("x", lines[number]).strip(), starts[number + 1]
        if line[-1:] in _OPENERS and not BLOCKS.opens.match(line):
            found = named(BLOCKS.next_line, text, starts[number], end, end + LIMITS.indent_chars)
            cuts += [(each.start("break"), each.end(), " ") for each in found]
    group: list[tuple[int, int, str]] = []
    for cut in sorted(cuts):
        if group and bisect_right(starts, group[-1][1]) < bisect_right(starts, cut[0]):
            yield _read_as_one(text, starts, group)
            group = []
        if not group or cut[0] >= group[-1][1]:
            group.append(cut)
    if group:
        yield _read_as_one(text, starts, group)


def _joins(text: str) -> Iterator[re.Pattern[str]]:
    """The shapes of what is between parts of one string; of lists only where they are joined."""
    yield BLOCKS.join
    if "\\\n" in text or "\\\r" in text:
        yield BLOCKS.continued
    if "concat" in text or ".join" in text:
        yield BLOCKS.listed


def _read_as_one(text: str, starts: Sequence[int], cuts: Sequence[tuple[int, int, str]]) -> tuple[range, str]:
    """The lines of some cuts, which are parts to leave out or replace, and the text without them."""
    first, last = (bisect_right(starts, at, 0, len(starts) - 1) - 1 for at in (cuts[0][0], cuts[-1][1]))
    pieces, at = [], starts[first]
    for begin, after, instead in cuts:
        pieces += [text[at:begin], instead]
        at = after
    joined = "".join((*pieces, text[at : starts[last + 1]])).rstrip("\r\n")
    return range(first, min(last, first + LIMITS.joined_lines) + 1), joined
