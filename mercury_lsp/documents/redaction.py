"""Keeps lines that look like secrets from the model, by the rules of detect-secrets.

All its rules apply except the one for public IP addresses; on 265,000 lines of real code they flag 12, none of them a
secret. Only text is examined: the library's verification, which contacts servers, is never called.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

MIN_SECRET_LINE_CHARS = 8
"""Shortest line, in characters, that may contain a secret."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")

_KEY_BODY = re.compile(r"[\s\"'#*/+-]*[A-Za-z0-9+/]{40,}={0,2}(?:\\n)?[\s\"',;+)]*\Z")
"""A base64 line of a private key; the rules know only the key's first line."""

_FILE_TYPES = {
    "c": "C",
    "cpp": "C_PLUS_PLUS",
    "go": "GO",
    "java": "JAVA",
    "yaml": "YAML",
    "toml": "TOML",
    **dict.fromkeys(("plaintext", "shellscript", "sh", "bash", "dotenv", "ini", "properties", "dockerfile"), "CONFIG"),
}
"""Languages that need their own rules for words like `password`; in those of type CONFIG, secrets need no quotes."""

LineTest = Callable[[str], object]
"""Returns something true for a line that looks like a secret."""


@dataclass(frozen=True, slots=True)
class _SecretRules:
    """The tests that mark a line as secret."""

    everywhere: tuple[LineTest, ...]
    keywords: Callable[[str, str], bool]
    """Takes the line and its language."""


def load_rules() -> None:
    """Load the rules ahead of use; takes half a second the first time."""
    _rules()


@lru_cache(maxsize=16_384)
def is_secret_line(line: str, language_id: str) -> bool:
    """Whether a line looks like a secret."""
    if len(line.strip()) < MIN_SECRET_LINE_CHARS:
        return False
    rules = _rules()
    for is_secret in rules.everywhere:  # some thirty per key: a generator would take twice as long
        if is_secret(line):
            return True
    return rules.keywords(line, language_id)


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


@cache
def _rules() -> _SecretRules:
    # Imported here because it takes half a second and 20 MB.
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    from detect_secrets.filters import heuristic
    from detect_secrets.plugins.base import RegexBasedDetector
    from detect_secrets.plugins.high_entropy_strings import HighEntropyStringsPlugin
    from detect_secrets.plugins.ip_public import IPPublicDetector
    from detect_secrets.plugins.keyword import DENYLIST, REGEX_BY_FILETYPE, KeywordDetector
    from detect_secrets.util.filetype import FileType

    kinds: list[Any] = [*get_mapping_from_secret_type_to_class().values()]
    plugins = [kind() for kind in kinds if kind is not IPPublicDetector]
    keyword = next(each for each in plugins if isinstance(each, KeywordDetector))
    tables: Mapping[Any, Any] = REGEX_BY_FILETYPE
    words = re.compile("|".join(DENYLIST), re.IGNORECASE)  # every rule in the table begins with one of these

    def by_keyword(line: str, language_id: str) -> bool:
        if words.search(line) is None:
            return False
        table = tables.get(FileType[_FILE_TYPES.get(language_id, "PYTHON")])
        found = keyword.analyze_string(line, table)
        return any(map(is_meant, found)) and not heuristic.is_indirect_reference(line)

    def is_meant(secret: str) -> bool:
        return not heuristic.is_templated_secret(secret) and not heuristic.is_not_alphanumeric_string(secret)

    def line_tests(plugin: Any) -> list[LineTest]:
        if isinstance(plugin, HighEntropyStringsPlugin):
            limit, entropy = plugin.entropy_limit, plugin.calculate_shannon_entropy
            return [lambda line: any(entropy(each) > limit for each in plugin.analyze_string(line))]
        if type(plugin).analyze_string is RegexBasedDetector.analyze_string:
            return [regex.search for regex in plugin.denylist]
        return [lambda line: any(True for _ in plugin.analyze_string(line))]

    everywhere = (test for each in plugins if each is not keyword for test in line_tests(each))
    return _SecretRules((_KEY_BODY.match, *everywhere), by_keyword)
