"""Judges a run of characters by itself: random text has neither words nor pairs of letters as words have them."""

import re
from functools import cache
from itertools import pairwise

from mercury_lsp.documents.secret_text.data import listed, read
from mercury_lsp.documents.secret_text.values import entropy, is_alphabet

MIN_OPAQUE_CHARS = 20
"""Shortest run that is taken for a key wherever it stands."""

MIN_PIECE_CHARS = 8
"""Shortest part of a run, between signs, that counts as random."""

MIN_SCORE = 5.7
"""Surprise per pair of letters, plus `CHANGE_BITS` per change of the kind of character: random text has 7 and more,
words and identifiers at most 5."""

CHANGE_BITS = 4.0
MIN_CHANGES = 0.2
"""Changes between digits, small and capital letters per character: random letters and digits have 0.4, names 0.1."""

MIN_MIXED_BITS = 4.6
"""Least surprise of letters with one digit or none."""

MIN_OPAQUE_SHARE = 0.6
"""Share of a run in random pieces from which on it is a key."""

MAX_FREE_HEX_CHARS = 128
"""Longest run of hexadecimal digits that is a key: what is longer is data."""

MIN_TEXT_DIGITS = 16
"""Fewest hexadecimal digits that may spell a text: fewer do so by chance."""

MIN_BEGUN_CHARS = 6
"""Shortest part of a run that counts as random where it would be completed."""

MAX_RUN_CHARS = 200
"""Characters before the cursor that are judged with a text behind it."""

RUN = re.compile(r"(?<![\w+/=~.-])[A-Za-z0-9_+/=~.-]{12,}")
_PIECE = re.compile(r"[A-Za-z0-9]+")
_HEX = re.compile(r"[0-9a-f]+\Z|[0-9A-F]+\Z")
_LETTERS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_CHANGE = re.compile(r"(?<=[a-z])(?=[^a-z])|(?<=[A-Z])(?=[^A-Z])|(?<=\d)(?=\D)")
_CAMEL = re.compile(r"(?<![A-Z])[A-Z](?=[a-z])")

HASH_CHARS = frozenset((24, 32, 40, 56, 64, 96, 128))
"""Lengths, in hexadecimal digits, of hashes and of identifiers of MongoDB, which are public."""

_DIGEST = re.compile(
    r"(?:commit|sha|checksum|integrity|etag|hash|digest|md5|blake|fingerprint|resolved|git_?head|(?<![a-z])(?:rev(?:ision)?"
    r"|ref|oid|sum|tag|tree|blob|parent|head|u?u?id|guid|expected|sri|build|version|crc|public\w{0,12}|address|tx\w{0,8}))"
    r"[\w-]{0,12}[\s\"'`)\]}(<:=>@,$.]{0,12}(?:&?\w{1,8}[\s=\"]{1,4})?(?:sha\d{1,3}[-:])?\Z"
    r"|(?:sha\d{1,3}|md5)\w{0,4}[-:]\Z|@\Z|\bh1:\Z|base64,\Z",
    re.IGNORECASE,
)
"""What stands before a hash, a version, an identifier or an image."""

_GIVEN = re.compile(
    r"(?:[\w\"'\])][ \t]{0,8}(?:: ?[&\w]{1,20}[ \t]?)?(?::=|=>?|:)[ \t]{0,4}|[(\[,][ \t]?)[bruf]?[\"'`]?\Z|\A\s*\Z"
)
"""What gives a value to a name or a call, or nothing."""

_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_URL = re.compile(r"://[^\s\"'`<>]*\Z")
_SETTING = re.compile(r"[\w.-]{1,40}=(?=[^=])")
_NAMES_FILE = re.compile(r" [ *][\w./-]+|[-. ]\w+\.\w+\s*\Z")


_TYPED = re.compile(r"[A-Za-z0-9!@#$%^&*_~?+-]{8,40}")
_NOT_TYPED = re.compile(r"%[sd\dxX]|@\w+\.|^[\^~@$#*-]|--|^\w+@|[\d.]+[-+]\w+$")
_LEET = re.compile(r"[a-zA-Z][013457@$]+[a-z]{1,2}\w*\d|[a-z]{2}[013457]+[a-z]{2}")
_BETWEEN = re.compile(r"[A-Za-z]{3}\d{2,}[A-Z][a-z]{2}")
ACCESS = re.compile(
    r"(?<![a-z])(?:log[ -]?(?:in|on)|sign[ -]?(?:in|on)|admin"
    r"|root|router|wi-?fi|wlan|vpn|pin|guest|unlock|account|credentials?"
    r"|ssh|ftp|pass(?:word|phrase|code|wd)?|pwd|secret|token|api[ _-]?key|user(?:name)?|demo|access)(?![a-z])"
)
"""Words, in lower case, beside which people write passwords."""

MNEMONIC = re.compile(r"(?<![A-Za-z] )(?<![A-Za-z])[a-z]{3,8}(?: [a-z]{3,8}){11,23}(?![ ]?\w)")
QUOTED_MNEMONIC = re.compile(r"[\"'`][a-z]{3,8}(?: [a-z]{3,8}){11}")
MNEMONIC_WORDS = frozenset((12, 15, 18, 21, 24))
_QUOTED = frozenset((quote, quote) for quote in "\"'`")
_FUNCTION_WORDS = frozenset(listed("prose"))


def has_opaque_run(line: str) -> bool:
    """Whether a line shows a random text that is no hash and no identifier by what stands before it."""
    return any(_is_key(line, *found.span()) for found in RUN.finditer(line))


def _is_key(line: str, start: int, end: int) -> bool:
    setting = _SETTING.match(line, start, end)
    start = setting.end() if setting else start
    value, before = line[start:end].strip("./="), line[max(0, start - 60) : start]
    if len(value) < MIN_OPAQUE_CHARS or line.startswith("//", start) or _UUID.search(value) or not is_opaque(value):
        return False
    if _DIGEST.search(before) or _URL.search(before):
        return False
    digits = value.removeprefix("0x")
    if not _HEX.match(digits):
        return True
    is_named = before.strip() != "" and _GIVEN.search(before) is not None
    if len(digits) in HASH_CHARS and (len(digits) != 32 or digits is not value):
        return is_named and (digits is value or len(digits) == 64) and not digits.isupper()
    return digits is value and len(value) <= MAX_FREE_HEX_CHARS and not _NAMES_FILE.match(line, end)


def is_opaque(run: str, least: int = MIN_PIECE_CHARS) -> bool:
    """Whether most of a run is random characters: hexadecimal, or letters and digits."""
    if is_alphabet(run):
        return False
    pieces = _PIECE.findall(run)
    size = sum(map(len, pieces))
    if size >= MIN_OPAQUE_CHARS and _is_base64("".join(pieces), len(pieces)):
        return True
    random = sum(len(piece) for piece in pieces if len(piece) >= least and _is_random(piece))
    return size > 0 and random >= MIN_OPAQUE_SHARE * size


def is_typed_password(value: str) -> bool:
    """Whether a word is a password by itself: digits inside a word, a number between words, signs among all kinds."""
    digits = sum(map(str.isdigit, value))
    if (
        digits < 2
        or not _TYPED.fullmatch(value)
        or is_alphabet(value)
        or _UUID.search(value)
        or _NOT_TYPED.search(value)
    ):
        return False
    letters = [kind for kind in (str.islower, str.isupper) if any(map(kind, value))]
    if len(letters) == 2 and (any(sign in value[1:] for sign in "!@#$%^&*") or _BETWEEN.search(value)):
        return True
    return bool(letters) and (
        _LEET.search(value) is not None or (len(letters) == 2 and _changes(value) > 0.3 * len(value))
    )


def has_typed_password(line: str) -> bool:
    """Whether a line speaks of an access and shows a password beside it."""
    if not ACCESS.search(line.lower()):
        return False
    return any(is_typed_password(found[0].strip("`'\"*_.,;:!?()<>|")) for found in re.finditer(r"\S{8,60}", line))


def has_mnemonic(line: str, is_code: bool) -> bool:
    """Whether a line is a phrase that wallets are recovered with; in code it is a string by itself."""
    found = MNEMONIC.search(line)
    if found is None or found[0].count(" ") + 1 not in MNEMONIC_WORDS:
        return False
    ends = line[: found.start()].rstrip(" \t")[-1:], line[found.end() :].strip()[:1]
    return _FUNCTION_WORDS.isdisjoint(found[0].split()) and (ends in _QUOTED if is_code else ends[1] in "\"'`")


def start_of_random(text: str, before: str) -> int | None:
    """Where in a text that follows `before` random characters begin, at 0 if they go on with it; None without them."""
    head = before[before.rfind("\n") + 1 :][-MAX_RUN_CHARS:]
    for found in RUN.finditer(head + text):
        start = found.start() + found[0].rfind("=", 0, -1) + 1
        run = found[0][start - found.start() :]
        if found.end() > len(head) and (_UUID.search(run) or is_opaque(run, MIN_BEGUN_CHARS)):
            return max(0, start - len(head))
    return None


def _is_base64(text: str, pieces: int) -> bool:
    """Whether the pieces of a run are one text of base64."""
    kinds = (str.islower, str.isupper, str.isdigit)
    return 6 * pieces <= len(text) and all(sum(map(kind, text)) > 1 for kind in kinds) and _is_random(text)


def _is_random(piece: str) -> bool:
    digits = sum(map(str.isdigit, piece))
    if digits == len(piece):
        return False
    if digits < 2:
        return _is_mixed(piece)
    if _HEX.match(piece):
        return entropy(piece) > 2.6 and digits < 0.9 * len(piece) and not _is_text(piece)
    changes = _changes(piece) / len(piece)
    return changes >= MIN_CHANGES and surprise(piece) + CHANGE_BITS * changes >= MIN_SCORE and entropy(piece) > 2.8


def _is_mixed(piece: str) -> bool:
    """Whether small and capital letters change as in no name."""
    return len(piece) >= 12 and _changes(piece) > 0.3 * len(piece) and surprise(piece) >= MIN_MIXED_BITS


def _changes(piece: str) -> int:
    return len(_CHANGE.findall(piece)) - len(_CAMEL.findall(piece))


def _is_text(digits: str) -> bool:
    """Whether hexadecimal digits spell letters."""
    return len(digits) % 2 == 0 and len(digits) >= MIN_TEXT_DIGITS and bytes.fromhex(digits).isascii()


def surprise(piece: str) -> float:
    """Bits per pair of letters within words, by how often they follow each other in code and prose."""
    bits, count = 2 * 5.5, 2
    for word in _LETTERS.findall(piece):
        low = word.lower()
        for first, second in pairwise(low):
            bits += _bigrams()[ord(first) - 97][ord(second) - 97]
            count += 1
    return bits / count


@cache
def _bigrams() -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(int, row)) for row in read("bigrams.txt").split())
