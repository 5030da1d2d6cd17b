"""Whether a value looks like a password or a key, rather than a name, a placeholder or a sentence."""

import math
import re
from collections import Counter
from itertools import pairwise

from mercury_lsp.documents.secret_text.data import listed

MIN_PASSWORD_CHARS = 4
"""Shortest value that is taken for a password."""

MIN_RANDOM_CHARS = 8
"""Shortest value that can look random."""

MIN_RANDOM_BITS = 2.5
"""Entropy per character of a value that looks random; words of ten different letters have 3.3, `aaaaaaaa` none."""

MAX_WORDY_SHARE = 0.6
"""Share of characters in words from which on a value is no key; a random text of letters has 0.2."""

MAX_WORDED_SHARE = 0.8
"""Share of words, each with a number of at most four digits, from which on a value is a name."""

MIN_IDENTIFIER_SHARE = 0.87
"""Share of characters in words from which on a value with digits is an identifier, as `OAuth2Session`."""

_WORD = re.compile(r"[A-Z][a-z]{2,}|[a-z]{3,}")
_PLACEHOLDER = re.compile(
    r"\$\{|\{\{|#\{|[._/-]\{\w*\}|\$\(|<[\w\s./-]+>|\*{2}|\.{3}|…|%[sd(]|^(?:\$|%\w+%$|\{[^}]*\}$|(.)\1+$|[xX\W_]+$|@\w+@$"
    r"|(?:my|your|the|some)[_-]?(?:pass(?:word)?|secret|token)$|EXAMPLE|^[0-9A-F]{40}$|^\w+(?::\w+)?(?:\|\w+(?::\w+)?)+$|8a477f597d28d172789f06886806bc55)"
)
"""What stands for a value that comes from elsewhere."""

_WORDS = frozenset(listed("no passwords"))
"""Words that describe a value in place of one."""

_SENTENCE_WORDS = frozenset(listed("sentences"))
"""Words of messages and descriptions, which passphrases lack."""

MIN_SENTENCE_WORDS = 4
"""Fewest words in one, with such a one as `secret` among them, that are no reference but a sentence."""

MIN_MNEMONIC_WORDS, MAX_PASSPHRASE_WORDS = 12, 24

_KEYWORD = re.compile(r"pass(?:word|wd|phrase|code)?|pwd|secret|token|credential|api_?key|auth", re.IGNORECASE)
_DIGIT_INSIDE = re.compile(r"[a-z]{4}(?<!auth)\d[a-z]")
"""A digit between words that no name has there, as in `hunter2secret`; `oauth2token` is a name."""
_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::|-|/|:)[A-Za-z_$][\w$]*)*\(?\)?")
"""An identifier, or several with dots, hyphens or slashes."""
_PATH = re.compile(r"(?:[.~]{0,2}/|[A-Za-z]:\\|https?:|file:|#|\.[a-z]|\[|\(|@|--?\w|.*/\Z)")
_VERSION = re.compile(r"[vV^~<>=]*\d+(?:[.\-_:](?:\d\w*|[a-z]+\d{0,4}))*\Z|\d{4}-\d\d-\d\d")
OBJECT_ID_CHARS = 24, 40
"""Hexadecimal characters of identifiers of MongoDB and of Git, which are no secrets."""

MIN_LONG_HEX_CHARS = 48
"""Hexadecimal characters from which on those of a key are nearly evenly spread, and those of a table are not."""

_ALPHABET = re.compile("abcdefg|ABCDEFG|0123456789")
_ENCODED = re.compile(r"[A-Za-z0-9+/=_-]{20,}\Z")
_HEX = re.compile(r"[0-9a-fA-F]{16,}\Z")


def entropy(text: str) -> float:
    """Bits per character, by the counts of its characters."""
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values())


def is_password(value: str) -> bool:
    """Whether a value after a word like `password` may be one: no placeholder, name of a field, path or sentence."""
    bare = value.strip()
    if not MIN_PASSWORD_CHARS <= len(bare) <= 400 or _PLACEHOLDER.search(bare) or bare.lower() in _WORDS:
        return False
    if re.search(r"\s", bare):
        return _is_passphrase(bare)
    return _is_password_name(bare) if _NAME.fullmatch(bare) else not _PATH.match(bare)


def has_sign(value: str) -> bool:
    """Whether a value has digits or signs that words of prose lack."""
    return any(each.isdigit() or each in "!@#%^&*+$" for each in value)


def _is_password_name(name: str) -> bool:
    """Whether what could be a name is rather a password: not a reference, a constant, or words about a password."""
    digits = sum(map(str.isdigit, name))
    if re.search(r"[.:/>()]", name):
        return digits > 0 and not _KEYWORD.search(name)
    if _KEYWORD.search(name):
        words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
        return len(words) == 1 or len(words) >= MIN_SENTENCE_WORDS or digits > 1 or bool(_DIGIT_INSIDE.search(name))
    return "_" not in name or not name.isupper()


def _is_passphrase(text: str) -> bool:
    """Whether a text with blanks is rather a passphrase than a sentence."""
    words = re.findall(r"[a-z]+", text.lower())
    if not 2 <= len(text.split()) <= MAX_PASSPHRASE_WORDS or re.search(r"[(){}\[\]<>=;|]|[.:?,]\Z", text):
        return False
    if len(text.split()) >= MIN_MNEMONIC_WORDS and re.fullmatch(r"[a-z ]+", text):
        return True
    return not _KEYWORD.search(text) and _SENTENCE_WORDS.isdisjoint(words) and sum(map(len, words)) > len(text) // 2


def looks_random(value: str) -> bool:
    """Whether a value looks like a key: long, of letters and digits, and no version, date, name or path."""
    if len(value) < MIN_RANDOM_CHARS or _PLACEHOLDER.search(value) or _VERSION.fullmatch(value):
        return False
    if " " in value or "[" in value or re.match(r"0x[\da-f]{1,16}\Z", value):
        return False
    digits = sum(map(str.isdigit, value))
    if not digits or digits == len(value) or not any(map(str.isalpha, value)):
        return False
    if _ALPHABET.search(value) or _word_share(value) >= MIN_IDENTIFIER_SHARE:
        return False
    return entropy(value) > MIN_RANDOM_BITS and (digits >= 2 or len(value) >= 16) and not _is_worded(value)


def _is_worded(value: str) -> bool:
    """Whether a value is words with a number, as `sha256`, `utf-8-sig` or `test_case_12` are."""
    parts = re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", value)
    worded = sum(map(len, filter(_is_word_with_number, parts)))
    return worded >= MAX_WORDED_SHARE * sum(map(len, parts)) and not re.search(r"\d[A-Za-z]+\d", value)


def _is_word_with_number(part: str) -> bool:
    letters = re.sub(r"\d+[a-z]?\Z", "", part)
    if len(part) - len(letters) > 4 or not (letters.isalpha() or not letters):
        return False
    return letters.islower() or letters.isupper() or not letters or is_wordy(letters)


def is_alphabet(value: str) -> bool:
    """Whether a value has a run of the alphabet or of all digits."""
    return _ALPHABET.search(value) is not None


def is_dense(value: str) -> bool:
    """Whether a quoted value is a key by its characters alone: hexadecimal or base64, at least 20 of them."""
    if _ALPHABET.search(value) or _PLACEHOLDER.search(value):
        return False
    if _HEX.match(value):
        return (
            len(value) >= 20
            and len(value) not in OBJECT_ID_CHARS
            and entropy(value) > (3.0 if len(value) < MIN_LONG_HEX_CHARS else 3.5)
            and any(map(str.isalpha, value))
        )
    if re.match(r"/[a-z]+/", value) or not _ENCODED.match(value) or not any(map(str.isdigit, value)) or is_wordy(value):
        return False
    return entropy(value) > 4.5 or (entropy(value) > 3.9 and _changes(value) >= len(value) // 3)


def is_wordy(value: str) -> bool:
    """Whether most of a value is in words, as in a name of several."""
    return _word_share(value) >= MAX_WORDY_SHARE


def _word_share(value: str) -> float:
    return sum(map(len, _WORD.findall(value))) / max(1, len(value))


def _changes(value: str) -> int:
    """How often the kind of character changes: often in a random text, seldom in words."""
    kinds = ["d" if each.isdigit() else "u" if each.isupper() else "l" for each in value if each.isalnum()]
    return sum(a != b for a, b in pairwise(kinds))
