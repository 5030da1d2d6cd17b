"""Judges whether a value by itself is a password or key, not a name, placeholder, sentence or hash."""

import math
import re
from collections import Counter
from functools import cache
from itertools import pairwise

from mercury_lsp.documents.secret_text.data import read, shapes, words

VALUES, RUNS = shapes("values"), shapes("runs")

MIN_PASSWORD_CHARS, MAX_PASSWORD_CHARS = 4, 400

MIN_RANDOM_CHARS, MIN_RANDOM_BITS = 8, 2.5
"""Shortest value that can look random, and its entropy per character; words of ten different letters have 3.3 bits."""

MAX_WORDY_SHARE = 0.6
"""A value with this share of characters in words is no key; random letters have 0.2."""

MAX_WORDED_SHARE = 0.8
"""A value with this share of words, each with at most four digits, is a name."""

MIN_IDENTIFIER_SHARE = 0.87
"""A value with digits and this share of characters in words is an identifier, as `OAuth2Session`."""

MIN_SENTENCE_WORDS, MIN_MNEMONIC_WORDS, MAX_PASSPHRASE_WORDS = 4, 12, 24

MNEMONIC_WORDS = frozenset((12, 15, 18, 21, 24))

HASH_CHARS = frozenset((24, 32, 40, 56, 64, 96, 128))
"""Lengths, in hexadecimal digits, of hashes and MongoDB identifiers, which are public."""

MAX_FREE_HEX_CHARS = 128
"""Most hexadecimal digits of a key; more are data."""

MIN_OPAQUE_CHARS, MIN_PIECE_CHARS, MIN_BEGUN_CHARS = 20, 8, 6
"""Shortest run that is a key anywhere; its shortest random part between signs, also while it is being completed."""

MIN_OPAQUE_SHARE = 0.6
"""A run with this share of random pieces is a key."""

MIN_SCORE, CHANGE_BITS, MIN_MIXED_BITS = 5.7, 4.0, 4.6
"""Surprise of random text per pair of letters, plus `CHANGE_BITS` per change of the kind of character. Random text has
7 and more, words and identifiers at most 5. The last one is for letters with at most one digit."""

MIN_CHANGES = 0.2
"""Changes between digits, lower and upper case per character: random text has 0.4, names 0.1."""

MIN_TEXT_DIGITS = 16
"""Fewest hexadecimal digits that may spell a text other than by chance."""

MAX_RUN_CHARS = 200
"""Characters before the cursor that are judged together with a text after it."""

_DESCRIPTIONS, _SENTENCE_WORDS = frozenset(words("no_passwords")), frozenset(words("sentences"))
_FUNCTION_WORDS, _QUOTED = frozenset(words("prose")), frozenset((quote, quote) for quote in "\"'`")


def entropy(text: str) -> float:
    """Bits per character, by the counts of its characters."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


def has_sign(value: str) -> bool:
    """Whether a value has digits or signs that words of prose lack."""
    return any(each.isdigit() or each in "!@#%^&*+$" for each in value)


def is_wordy(value: str) -> bool:
    """Whether most of a value is words, as in a long name."""
    return _word_share(value) >= MAX_WORDY_SHARE


def is_password(value: str) -> bool:
    """Whether a value after a word like `password` may be one: no placeholder, field, path or sentence."""
    bare = value.strip()
    if not MIN_PASSWORD_CHARS <= len(bare) <= MAX_PASSWORD_CHARS or VALUES.placeholder.search(bare):
        return False
    if bare.lower().strip("!?*[]") in _DESCRIPTIONS:
        return False
    if re.search(r"\s", bare):
        return _is_passphrase(bare)
    return _is_password_name(bare) if VALUES.name.fullmatch(bare) else not VALUES.path.match(bare)


def _is_password_name(name: str) -> bool:
    """Whether a possible name is rather a password: no reference, constant, or words about a password."""
    digits = sum(map(str.isdigit, name))
    if re.search(r"[.:/>()]", name):
        return digits > 0 and not VALUES.keyword.search(name)
    if VALUES.keyword.search(name):
        count = len(re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name))
        return (
            count == 1
            or (count >= MIN_SENTENCE_WORDS and "_" not in name)
            or digits > 1
            or bool(VALUES.digit_inside.search(name))
        )
    return "_" not in name or not name.isupper()


def _is_passphrase(text: str) -> bool:
    """Whether a text with blanks is rather a passphrase than a sentence."""
    if text[0].isupper() and not text.istitle() and not re.search(r"[!@#$%^&*+]|[^\W\d]\d|\d[^\W\d]", text):
        return False  # a label
    found, count = re.findall(r"[a-z]+", text.lower()), len(text.split())
    if not 2 <= count <= MAX_PASSPHRASE_WORDS or re.search(r"[(){}\[\]<>=;|]|[.:?,]\Z", text):
        return False
    if count >= MIN_MNEMONIC_WORDS and re.fullmatch(r"[a-z ]+", text):
        return True
    is_sentence = VALUES.keyword.search(text) or not _SENTENCE_WORDS.isdisjoint(found)
    return not is_sentence and sum(map(len, found)) > len(text) // 2


def looks_random(value: str) -> bool:
    """Whether a value looks like a key: long, with letters and digits, no version, date, name or path."""
    if len(value) < MIN_RANDOM_CHARS or VALUES.placeholder.search(value) or VALUES.version.fullmatch(value):
        return False
    if " " in value or "[" in value or re.match(r"0x[\da-f]{1,16}\Z", value):
        return False
    digits = sum(map(str.isdigit, value))
    if not digits or digits == len(value) or not any(map(str.isalpha, value)):
        return False
    if VALUES.alphabet.search(value) or _word_share(value) >= MIN_IDENTIFIER_SHARE:
        return False
    return entropy(value) > MIN_RANDOM_BITS and (digits >= 2 or len(value) >= 16) and not _is_worded(value)


def _is_worded(value: str) -> bool:
    """Whether a value is words with a number, as `sha256`, `utf-8-sig` or `test_case_12` are."""
    parts = re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", value)
    worded = sum(map(len, filter(_is_word_with_number, parts)))
    return worded >= MAX_WORDED_SHARE * sum(map(len, parts)) and not re.search(r"\d[A-Za-z]+\d", value)


def _is_word_with_number(part: str) -> bool:
    letters = re.sub(r"\d+[a-z]{0,2}\Z", "", part)
    if len(part) - len(letters) > 4 or not (letters.isalpha() or not letters):
        return False
    return letters.islower() or letters.isupper() or not letters or is_wordy(letters)


def _word_share(value: str) -> float:
    return sum(map(len, VALUES.word.findall(value))) / max(1, len(value))


def has_opaque_run(line: str) -> bool:
    """Whether a line shows random text that the text before it does not call a hash or identifier."""
    return any(_is_key(line, *found.span()) for found in RUNS.run.finditer(line))


def _is_key(line: str, start: int, end: int) -> bool:
    setting = RUNS.setting.match(line, start, end)
    start = setting.end() if setting else start
    value, before = line[start:end].strip("./="), line[max(0, start - 60) : start]
    if len(value) < MIN_OPAQUE_CHARS or line.startswith("//", start) or RUNS.uuid.search(value) or not is_opaque(value):
        return False
    if RUNS.digest.search(before) and not RUNS.paired.search(before):
        return False
    if RUNS.url.search(before) and not RUNS.parameter.search(before):
        return False
    digits = value.removeprefix("0x")
    if not RUNS.hex.match(digits):
        return True
    is_named = before.strip() != "" and RUNS.given.search(before) is not None
    if len(digits) in HASH_CHARS and (len(digits) != 32 or digits is not value):
        return is_named and (digits is value or len(digits) == 64) and not digits.isupper()
    return digits is value and len(value) <= MAX_FREE_HEX_CHARS and not RUNS.names_file.match(line, end)


def is_opaque(run: str, least: int = MIN_PIECE_CHARS) -> bool:
    """Whether most of a run is random characters: hexadecimal, or letters and digits."""
    if VALUES.alphabet.search(run):
        return False
    pieces = RUNS.piece.findall(run)
    size = sum(map(len, pieces))
    if size >= MIN_OPAQUE_CHARS and _is_base64("".join(pieces), len(pieces)):
        return True
    random = sum(len(piece) for piece in pieces if len(piece) >= least and _is_random(piece))
    return size > 0 and random >= MIN_OPAQUE_SHARE * size


def _is_base64(text: str, pieces: int) -> bool:
    """Whether the pieces of a run are one text of base64."""
    kinds = (str.islower, str.isupper, str.isdigit)
    return 6 * pieces <= len(text) and all(sum(map(kind, text)) > 1 for kind in kinds) and _is_random(text)


def _is_random(piece: str) -> bool:
    """Whether a piece is random: hexadecimal digits that spell no text, or characters that no name has."""
    digits, changes = sum(map(str.isdigit, piece)), _changes(piece) / len(piece)
    if digits == len(piece):
        return False
    if digits < 2:
        return len(piece) >= 12 and changes > 0.3 and surprise(piece) >= MIN_MIXED_BITS
    if RUNS.hex.match(piece):
        spells = len(piece) % 2 == 0 and len(piece) >= MIN_TEXT_DIGITS and bytes.fromhex(piece).isascii()
        return entropy(piece) > 2.6 and digits < 0.9 * len(piece) and not spells
    return changes >= MIN_CHANGES and surprise(piece) + CHANGE_BITS * changes >= MIN_SCORE and entropy(piece) > 2.8


def _changes(piece: str) -> int:
    return len(RUNS.change.findall(piece)) - len(RUNS.camel.findall(piece))


def surprise(piece: str) -> float:
    """Bits per pair of letters within words, by their frequency in code and prose."""
    bits, count = 2 * 5.5, 2
    for word in RUNS.letters.findall(piece):
        for first, second in pairwise(word.lower()):
            bits += _bigrams()[ord(first) - 97][ord(second) - 97]
            count += 1
    return bits / count


@cache
def _bigrams() -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(int, row)) for row in read("bigrams.txt").split())


def start_of_random(text: str, before: str) -> int | None:
    """Where random characters begin in a text after `before`, 0 if they continue it; None without any."""
    head = before[before.rfind("\n") + 1 :][-MAX_RUN_CHARS:]
    for found in RUNS.run.finditer(head + text):
        start = found.start() + found[0].rfind("=", 0, -1) + 1
        run = found[0][start - found.start() :]
        if found.end() > len(head) and (RUNS.uuid.search(run) or is_opaque(run, MIN_BEGUN_CHARS)):
            return max(0, start - len(head))
    return None


WORDS_AND_NUMBER, MIXED, SIGNED = 1, 2, 3
"""How certainly a word is a password by itself: words with a number, like many names; digits or capitals inside words;
signs, too."""


def password_look(word: str) -> int:
    """How certainly a word is a password by itself, as above; 0 if it is none."""
    if RUNS.groups.fullmatch(word):
        return MIXED
    if not RUNS.typed.fullmatch(word) or not any(map(str.isdigit, word)) or RUNS.not_typed.search(word):
        return 0
    if any(shape.search(word) for shape in (VALUES.alphabet, VALUES.placeholder, RUNS.uuid, RUNS.all_hex)):
        return 0
    if RUNS.signed.search(word):
        return SIGNED
    kinds = sum(any(map(kind, word)) for kind in (str.islower, str.isupper))
    is_mixed = kinds == 2 and _changes(word) > 0.3 * len(word)
    if is_mixed or RUNS.inside.search(word):
        return MIXED
    return WORDS_AND_NUMBER if RUNS.numbered.fullmatch(word) else 0


def is_mnemonic(line: str, found: re.Match[str], is_code: bool) -> bool:
    """Whether successive words are a wallet's recovery phrase; in code it is a whole string."""
    count = found[0].count(" ") + 1
    ends = line[: found.start()].rstrip(" \t")[-1:], line[found.end() :].strip()[:1]
    is_alone = ends in _QUOTED if is_code else ends[1] in "\"'`"
    return count in MNEMONIC_WORDS and is_alone and _FUNCTION_WORDS.isdisjoint(found[0].split())
