"""Keys by their characters: blocks of base64 with marks around them, values in quotes that are random, hashes."""

import re
from collections.abc import Iterable, Sequence

from mercury_lsp.documents.secret_text.values import is_wordy

_KINDS = r"[A-Z0-9 ]{0,40}(?:PRIVATE KEY|PGP MESSAGE|SECRET)"
KEY_START = re.compile(rf"-----BEGIN {_KINDS}|PuTTY-User-Key-File|Private-Lines:|BEGIN SSH2 ENCRYPTED")
KEY_END = re.compile(rf"-----END {_KINDS}|Private-MAC:")
KEY_MARK = re.compile(
    rf"(?<!\.\. )-----(?:BEGIN|END) {_KINDS}(?!-----\s*\.\.)"
    r"|PuTTY-User-Key-File|Private-(?:Lines|MAC):|BEGIN SSH2 ENCRYPTED"
)

_BEFORE = r"[\s\"'`#*/+;,|.<>%rbuf-]{0,40}"
_AFTER = r"(?:\\r)?(?:\\n)?[\s\"'`,;+).\\<]{0,20}\Z"
"""Code around a line of a key: quotes, marks of comments, operators, an escaped line break."""

_KEY_BODY = re.compile(rf"{_BEFORE}(?P<body>[A-Za-z0-9+/]{{40,}}={{0,2}}){_AFTER}")
_KEY_ROW = re.compile(rf"{_BEFORE}(?P<body>[A-Za-z0-9+/]{{16,}}={{0,2}}){_AFTER}")
_KEY_TAIL = re.compile(rf"{_BEFORE}(?P<body>=?[A-Za-z0-9+/]{{1,76}}={{0,2}}){_AFTER}")
"""A line of a key in base64, a shorter one, and what may be its last line or its checksum."""

_LONG_BODY = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}(?:\\r)?\\n|[A-Za-z0-9+/]{120,}")
"""Part of a key in one line: rows that end in an escape, or one long row."""

_HASHED = re.compile(
    r"\$(?:2[abxy]|argon2\w{0,4}|[156y]|apr1|scrypt|pbkdf2[\w-]{0,20})\$[\w./$=,+-]{20,}|\{S?SHA\d{0,3}\}[A-Za-z0-9+/=]{20,}"
)
"""Hashes of passwords."""


_REPEATED = re.compile(r"([A-Za-z0-9+/])\1{3}|ABCDEFG|abcdefg")
"""What images, fonts and alphabets have, and of 4,000 rows of a key one."""

MIN_KEY_ROWS = 3
"""Fewest short rows of one length that are taken for a key."""

_EMBEDDED = re.compile(r"data:(?:image|font|audio|video)/[\w.+-]{1,20};base64,")
"""The start of an image, a font or the like in a URL."""


def key_body(line: str) -> bool:
    """Whether a line is a row of base64 and nothing else, as the rows of a key are."""
    found = _KEY_BODY.match(line)
    return found is not None and _is_mixed(found["body"])


def key_row(line: str) -> bool:
    """Whether a line is nothing but a row of base64, of whatever length keys are written in."""
    return _KEY_ROW.match(line) is not None


def is_key(rows: Iterable[str]) -> bool:
    """Whether rows of base64 of one length, in succession, are of a key: enough of them, and random."""
    bodies = [found["body"] for row in rows if (found := _KEY_ROW.match(row))]
    return len(bodies) >= MIN_KEY_ROWS and _is_mixed("".join(bodies)) and not any(map(is_wordy, bodies))


def is_image_row(lines: Sequence[str], number: int) -> bool:
    """Whether a row of base64 is of an image or a font: it or one beside it repeats a character as keys never do."""
    near = [line for line in lines[max(0, number - 1) : number + 2] if key_row(line)]
    return any(map(_REPEATED.search, near)) and key_row(lines[number])


def key_tail(line: str) -> bool:
    """Whether a line may be the last one of a key in base64."""
    return _KEY_TAIL.match(line) is not None and any(map(str.isalnum, line))


def has_key_in_line(line: str) -> bool:
    """Whether a line shows the hash of a password, or a key lies in it."""
    if _EMBEDDED.search(line):
        return False
    if _HASHED.search(line):
        return True
    return any(_is_mixed(found[0]) for found in _LONG_BODY.finditer(line) if not found[0].startswith("0x"))


def _is_mixed(body: str) -> bool:
    has_all = any(map(str.isupper, body)) and any(map(str.islower, body)) and any(map(str.isdigit, body))
    return has_all and not is_wordy(body) and not _REPEATED.search(body)
