"""Keeps lines that look like secrets from the model: in chunks of a document, around the cursor, and in edits.

`secret_text` decides what looks like a secret. Lines and chunks are judged with their neighbours, because a value may
be on the next line and the end of a key looks harmless.
"""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import count

from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.secret_text.blocks import (
    CACHED_TEXTS,
    LINE,
    MAX_REACH_CHARS,
    REACH_LINES,
    is_led_to,
    key_row,
    leads_on,
    secret_lines,
)
from mercury_lsp.documents.secret_text.lines import is_secret_line
from mercury_lsp.documents.secret_text.lines import issuer_pattern as load_rules

__all__ = ["is_secret_line", "load_rules"]

MAX_SHARED_CHARS = 5
"""Characters that a line may share with a secret line on the other side of a change."""

MAX_COMPARED_CHARS = 800
"""Longer pairs of lines count as similar, because comparing them would take milliseconds."""

MAX_EDIT_REACH_CHARS = 4_000
"""Characters on either side of an edit, within the lines it touches, that decide whether they are secret."""

MAX_KEY_CHUNKS = 12
"""Most chunks of unmarked base64 that may be a key: 6,000 characters; a key of 4,096 bits has 3,300."""

REACH_CHUNKS = 16
"""Chunks on either side that are redacted with a part of a long line: a key of 8,000 characters is one secret."""


@lru_cache(CACHED_TEXTS)
def without_secrets(text: str, language_id: str) -> str:
    """The text without the lines that look like secrets; the same object if there are none."""
    return _kept(text, secret_lines(text, language_id))


def parts_without_secrets(parts: Sequence[str], language_id: str) -> list[str]:
    """The parts of one text, each of whole lines, without the lines that look like secrets in that text."""
    redacted, numbers = secret_lines("".join(parts), language_id), count()
    return ["".join(line for line in LINE.findall(part) if next(numbers) not in redacted) for part in parts]


def shows_secret(text: str, language_id: str, above: str = "", below: str = "") -> bool:
    return bool(_redacted(text, language_id, above, below))


def redacted_lines(text: str, language_id: str) -> list[str]:
    lines = LINE.findall(text)
    return [lines[number] for number in sorted(secret_lines(text, language_id))]


def begins_inside(chunks: Sequence[str], number: int) -> bool:
    """Whether a chunk begins inside a line; the line is then longer than a chunk."""
    return 0 < number < len(chunks) and not chunks[number - 1].endswith(("\n", "\r"))


def holds_partial_line(chunks: Sequence[str], number: int) -> bool:
    """Whether a chunk begins or ends inside a line."""
    return begins_inside(chunks, number) or begins_inside(chunks, number + 1)


def with_neighbours(chunks: Sequence[str], number: int) -> tuple[str, str, str]:
    """A chunk between the neighbouring lines that decide whether its lines are secret."""
    above = _last_lines(chunks[number - 1]) if number else ""
    return above, chunks[number], _first_lines(chunks[number + 1]) if number + 1 < len(chunks) else ""


def chunk_without_secrets(chunks: Sequence[str], number: int, language_id: str) -> str:
    """A chunk without secrets, and without parts of long secret lines."""
    above, below = chunks[number - 1] if number else "", chunks[number + 1] if number + 1 < len(chunks) else ""
    if _is_plain(above, chunks[number], below, language_id):
        return chunks[number]
    return _kept(chunks[number], _redacted_in_chunk(chunks, number, language_id))


@lru_cache(CACHED_TEXTS)
def _is_plain(above: str, chunk: str, below: str, language_id: str) -> bool:
    """Whether a chunk between these is whole lines without a secret: true of most chunks around every key."""
    chunks, number = ((above, chunk, below), 1) if above else ((chunk, below), 0)
    return not (_redacted_in_chunk(chunks, number, language_id) or holds_partial_line(chunks, number))


def around_cursor(chunks: Sequence[str], number: int, at: int, language_id: str) -> tuple[str, str, bool]:
    """Chunk `number` without secrets, before and after the character `at`, and whether the cursor's line is one.

    The cursor's own line stays.
    """
    if not chunks:
        return "", "", False
    chunk, redacted = chunks[number], _redacted_in_chunk(chunks, number, language_id)
    if not redacted:
        return chunk[:at], chunk[at:], False
    start = max(chunk.rfind("\n", 0, at), chunk.rfind("\r", 0, at)) + 1
    own, line = len(LINE.findall(chunk[:start])), LINE.match(chunk, start)
    end = line.end() if line is not None else start
    before = _kept(chunk[:start], redacted) + chunk[start:at]
    return before, chunk[at:end] + _kept(chunk[end:], redacted, own + 1), own in redacted


def change_without_secrets(before: str, after: str, language_id: str, above: str, below: str) -> tuple[str, str]:
    """Lines before and after a change, without secrets and lines like them on the other side.

    A secret that is half typed or half deleted looks harmless.
    """
    sides = [(LINE.findall(text), _redacted(text, language_id, above, below)) for text in (before, after)]
    secrets = [lines[number].strip() for lines, redacted in sides for number in redacted]
    old, new = (
        "".join(line for own, line in enumerate(lines) if own not in redacted and not _is_like_any(line, secrets))
        for lines, redacted in sides
    )
    return old, new


def _is_like_any(line: str, others: Iterable[str]) -> bool:
    """Whether a line shares more than `MAX_SHARED_CHARS` characters with one of the others."""
    bare = line.strip()
    return any(
        len(bare) + len(other) > MAX_COMPARED_CHARS
        or SequenceMatcher(None, bare, other, autojunk=False).find_longest_match().size > MAX_SHARED_CHARS
        for other in others
    )


def lines_show_secret(snapshot: Snapshot, start: int, end: int) -> bool:
    """Whether a line in [start, end), whole lines, looks like a secret."""
    return shows_secret(snapshot.slice(start, end), snapshot.language_id, *around_lines(snapshot, start, end))


def edit_shows_secret(snapshot: Snapshot, start: int, end: int, new: str) -> bool:
    """Whether a line touched by the edit of [start, end) looks like a secret, before or after it."""
    source = snapshot.source
    first = max(source.line_bounds(start)[0], start - MAX_EDIT_REACH_CHARS)
    last = min(source.offset_at(source.line_of(end) + 1, 0), end + MAX_EDIT_REACH_CHARS)
    texts = (source.slice(first, last), source.slice(first, start) + new + source.slice(end, last))
    around = around_lines(snapshot, first, last)
    return any(shows_secret(text, snapshot.language_id, *around) for text in texts)


def around_lines(snapshot: Snapshot, start: int, end: int) -> tuple[str, str]:
    """The text around the whole lines [start, end) that decides whether they look like secrets."""
    source = snapshot.source
    return source.slice(max(0, start - MAX_REACH_CHARS), start), source.slice(end, end + MAX_REACH_CHARS)


def _kept(text: str, redacted: frozenset[int], first: int = 0) -> str:
    """The text without its redacted lines, counted from `first`; the same object if there are none."""
    if not redacted:
        return text
    return "".join(line for number, line in enumerate(LINE.findall(text), first) if number not in redacted)


@lru_cache(CACHED_TEXTS)
def _redacted(text: str, language_id: str, above: str, below: str) -> frozenset[int]:
    """The numbers of the lines of a text that look like secrets."""
    above, below = _last_lines(above), _first_lines(below) if text.endswith(("\n", "\r")) else ""
    above, below = above if leads_on(above, language_id) else "", below if is_led_to(text, below) else ""
    found = secret_lines(above + text + below, language_id)
    if not found:
        return found
    before, count = len(LINE.findall(above)), len(LINE.findall(text))
    return frozenset(number - before for number in found if 0 <= number - before < count)


@lru_cache(CACHED_TEXTS)
def _last_lines(text: str) -> str:
    """The last lines of a text, which matter for what follows; none if the last one is incomplete."""
    return "".join(LINE.findall(text[-MAX_REACH_CHARS:])[-REACH_LINES:]) if text.endswith(("\n", "\r")) else ""


@lru_cache(CACHED_TEXTS)
def _first_lines(text: str) -> str:
    """The first lines of a text, which matter for what precedes."""
    return "".join(LINE.findall(text[:MAX_REACH_CHARS])[:REACH_LINES])


def _redacted_in_chunk(chunks: Sequence[str], number: int, language_id: str) -> frozenset[int]:
    """The numbers of the lines of a chunk that are redacted."""
    above, chunk, below = with_neighbours(chunks, number)
    redacted = _redacted(chunk, language_id, above, below)
    if redacted and _is_data(chunks, number):
        redacted -= {number for number, line in enumerate(LINE.findall(chunk)) if key_row(line)}
    if begins_inside(chunks, number) and _is_long_secret(chunks, number, language_id):
        redacted |= {0}
    if begins_inside(chunks, number + 1) and _is_long_secret(chunks, number + 1, language_id):
        redacted |= {len(LINE.findall(chunk)) - 1}
    return redacted


def _is_data(chunks: Sequence[str], number: int) -> bool:
    """Whether a chunk is amid more rows of unmarked base64 than a key has: an image or a font."""
    rows = 0
    for step in (-1, 1):
        at = number if step < 0 else number + 1
        while 0 <= at < len(chunks) and rows <= MAX_KEY_CHUNKS and _is_rows(chunks[at]):
            rows, at = rows + 1, at + step
        if not 0 <= at < len(chunks) or "----" in chunks[at]:
            return False
    return rows > MAX_KEY_CHUNKS


@lru_cache(CACHED_TEXTS)
def _is_rows(chunk: str) -> bool:
    return all(map(key_row, LINE.findall(chunk)))


def _is_long_secret(chunks: Sequence[str], border: int, language_id: str) -> bool:
    """Whether the line that crosses the border before chunk `border` is secret there or nearby."""
    for step in (1, -1):
        at = border
        while abs(at - border) <= REACH_CHUNKS and begins_inside(chunks, at):
            if _is_secret_across(chunks[at - 1], chunks[at], language_id):
                return True
            within = chunks[at if step > 0 else at - 1]
            if "\n" in within or "\r" in within:
                break
            at += step
    return False


@lru_cache(CACHED_TEXTS)
def _is_secret_across(before: str, chunk: str, language_id: str) -> bool:
    """Whether the line that spans two chunks looks like a secret from its parts in them."""
    return is_secret_line((LINE.findall(before) or [""])[-1] + (LINE.findall(chunk) or [""])[0], language_id)
