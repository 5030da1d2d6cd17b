"""Keeps lines that look like secrets from the model.

The rules (`secret_rules.py`) are those of detect-secrets. Its rule for public IP addresses is left out: in 265,000
lines of real code it flags 12, none of them a secret.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache

from mercury_lsp.documents.secret_rules import LineTest, is_assigned_secret, line_tests

MIN_SECRET_LINE_CHARS = 8
"""Shortest line, in characters, that may contain a secret."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")

_KEY_BODY = re.compile(r"[\s\"'#*/+-]*[A-Za-z0-9+/]{40,}={0,2}(?:\\n)?[\s\"',;+)]*\Z")
"""A base64 line of a private key; the rules know only the key's first line."""


@cache
def load_rules() -> tuple[LineTest, ...]:
    """The tests that hold for every language; compiling them takes 10 ms the first time."""
    return (_KEY_BODY.match, *line_tests())


@lru_cache(maxsize=16_384)
def is_secret_line(line: str, language_id: str) -> bool:
    """Whether a line looks like a secret."""
    if len(line.strip()) < MIN_SECRET_LINE_CHARS:
        return False
    for is_secret in load_rules():  # some fifty per line: a generator would take twice as long
        if is_secret(line):
            return True
    return is_assigned_secret(line, language_id)


@lru_cache(maxsize=4096)
def without_secrets(text: str, language_id: str) -> str:
    """The text without the lines that look like secrets; the same object if there are none."""
    lines = _LINE.findall(text)
    kept = [line for line in lines if not is_secret_line(line, language_id)]
    return text if len(kept) == len(lines) else "".join(kept)


def begins_inside(chunks: Sequence[str], number: int) -> bool:
    """Whether a chunk begins inside a line; the line is then longer than a chunk."""
    return 0 < number < len(chunks) and not chunks[number - 1].endswith(("\n", "\r"))


def holds_partial_line(chunks: Sequence[str], number: int) -> bool:
    """Whether a chunk begins or ends inside a line."""
    return begins_inside(chunks, number) or begins_inside(chunks, number + 1)


def chunk_without_secrets(chunks: Sequence[str], number: int, language_id: str) -> str:
    """A chunk without secrets, including its part of a line that is secret only together with the next chunk's part."""
    chunk = chunks[number]
    if begins_inside(chunks, number):
        chunk = without_secret_start(chunks[number - 1], chunk, language_id)
    if begins_inside(chunks, number + 1):
        head, tail = _across(chunk, chunks[number + 1])
        if is_secret_line(head + tail, language_id):
            chunk = chunk.removesuffix(head)
    return without_secrets(chunk, language_id)


def without_secret_start(before: str, chunk: str, language_id: str) -> str:
    """A chunk without the end of a line begun in the previous chunk, if the whole line looks like a secret."""
    head, tail = _across(before, chunk)
    return chunk.removeprefix(tail) if is_secret_line(head + tail, language_id) else chunk


def _across(before: str, chunk: str) -> tuple[str, str]:
    """Both parts of the line that spans two chunks."""
    return (_LINE.findall(before) or [""])[-1], (_LINE.findall(chunk) or [""])[0]


def before_cursor(text: str, language_id: str) -> str:
    """A text that ends at the cursor, without secrets; the cursor's line stays."""
    start = max(text.rfind("\n"), text.rfind("\r")) + 1
    return without_secrets(text[:start], language_id) + text[start:]


def after_cursor(text: str, language_id: str) -> str:
    """A text that starts at the cursor, without secrets; the cursor's line stays."""
    line = _LINE.match(text)
    end = line.end() if line else 0
    return text[:end] + without_secrets(text[end:], language_id)
