"""Whether one line shows a secret."""

import re
from collections.abc import Iterator
from functools import lru_cache

from mercury_lsp.documents.secret_text.addresses import has_header_secret, has_source_secret, has_url_secret
from mercury_lsp.documents.secret_text.commands import COMMANDS, has_command_secret
from mercury_lsp.documents.secret_text.issuers import NAMED_ISSUER, issuer_pattern
from mercury_lsp.documents.secret_text.keys import KEY_MARK, has_key_in_line, key_body
from mercury_lsp.documents.secret_text.keywords import CODE_LANGUAGES, WORDS, has_secret_value
from mercury_lsp.documents.secret_text.opaque import (
    ACCESS,
    MNEMONIC,
    QUOTED_MNEMONIC,
    has_mnemonic,
    has_opaque_run,
    has_typed_password,
)
from mercury_lsp.documents.secret_text.values import is_wordy, looks_random

MIN_SECRET_LINE_CHARS = 7
"""Shortest line, in characters, that may contain a secret."""

CACHED_LINES = 2048
"""Lines of which it is remembered whether they are secret: the suspicious ones of a text that a key changes."""

_RUN = re.compile(r"[A-Za-z0-9_+/=%~][A-Za-z0-9_+/=.:%~|$-]{14,}")
"""Shortest token or value of an issuer."""

MIN_TOKEN_WITHOUT_DIGIT_CHARS = 20
"""Shortest token that may have no digit by chance: of 20 letters and digits 3 % have none, of 36 0.2 %."""

_SOURCE = re.compile(r":[^\s:@]{3,100}@\w")
_HOST = re.compile(r"^\[?[\w-]+\.[\w.-]+\]?(?::\d+)?[ \t]+[\w.@+-]+:\S{4}", re.MULTILINE)
"""Parts of a line with a user, a password and a host."""

_DIGIT = re.compile(r"\d")
_WORDS = re.compile("|".join(WORDS))
_COMMANDS = re.compile("|".join(COMMANDS))


def load() -> None:
    """Compile the rules ahead of use; takes 0.1 s the first time."""
    issuer_pattern()


def suspicious_offsets(text: str, language_id: str) -> Iterator[int]:
    """Where in a text a secret may be: a few of a hundred lines of code, at a fifth of the cost of examining each."""
    yield from (found.start() for found in _RUN.finditer(text) if _may_be_token(found[0]))
    low = text.lower()
    yield from word_offsets(low)
    for word in COMMANDS:  # most chunks have none, and looking for each is faster than the expression
        if word in low:
            yield from (found.start() for found in _COMMANDS.finditer(low))
            break
    if "----" in text or "PuTTY" in text or "Private-" in text:
        yield from (found.start() for found in KEY_MARK.finditer(text))
    if "@" in text:
        yield from (found.start() for found in _SOURCE.finditer(text))
    if "://" in text:
        yield from (found.start() for found in re.finditer("://", text))
    yield from (found.start() for found in _HOST.finditer(text))
    is_code = language_id in CODE_LANGUAGES
    yield from (found.start() for found in (QUOTED_MNEMONIC if is_code else MNEMONIC).finditer(text))
    if not is_code:
        yield from (found.start() for found in ACCESS.finditer(low))


def has_word(line: str) -> bool:
    """Whether a line has a word like `password`."""
    return _WORDS.search(line.lower()) is not None


def word_offsets(low: str) -> Iterator[int]:
    """Where words like `password` are in a text in lower case."""
    return (found.start() for found in _WORDS.finditer(low))


def _may_be_token(run: str) -> bool:
    if _DIGIT.search(run) is not None:
        return True
    return len(run) >= MIN_TOKEN_WITHOUT_DIGIT_CHARS and not run.islower() and not run.isupper() and not is_wordy(run)


@lru_cache(CACHED_LINES)
def is_secret_line(line: str, language_id: str) -> bool:
    """Whether a line looks like a secret."""
    if len(line) < MIN_SECRET_LINE_CHARS or line.isspace():
        return False
    low = line.lower()
    if KEY_MARK.search(line) or (any(_may_be_token(run) for run in _RUN.findall(line)) and _has_token(line)):
        return True
    if "://" in line and has_url_secret(line):
        return True
    if ":" in line and has_source_secret(line):
        return True
    if _WORDS.search(low) and (has_secret_value(line, language_id) or has_header_secret(line)):
        return True
    if _COMMANDS.search(low) and has_command_secret(line):
        return True
    is_code = language_id in CODE_LANGUAGES
    return has_mnemonic(line, is_code) or (not is_code and has_typed_password(line))


def _has_token(line: str) -> bool:
    if any("EXAMPLE" not in found[0] for found in issuer_pattern().finditer(line)):
        return True
    if _DIGIT.search(line) is None:
        return False
    if key_body(line) or has_key_in_line(line) or has_opaque_run(line):
        return True
    return any(looks_random(found[1]) for found in NAMED_ISSUER.finditer(line))
