"""Judges whether a value by itself is a password or key, not a name, placeholder, sentence or hash."""

import math
import re
from collections import Counter
from itertools import pairwise

from mercury_lsp.documents.secret_text.data import LIMITS, read, shapes, words

VALUES, RUNS = shapes("values"), shapes("runs")

_DESCRIPTIONS, _SENTENCE_WORDS = frozenset(words("no_passwords")), frozenset(words("sentences"))

_BIGRAMS = [list(map(int, row)) for row in read("bigrams.txt").split()]

KINDS = (str.islower, str.isupper, str.isdigit)
"""The kinds of characters that keys in base64 have."""

WORDS_AND_NUMBER, MIXED, SIGNED = 1, 2, 3
"""How certainly a word is a password by itself: words with a number, like many names; digits or capitals inside words;
signs, too."""


def entropy(text: str) -> float:
    """Bits per character, by the counts of its characters."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


def has_sign(value: str) -> bool:
    """Whether a value has digits or signs that words of prose lack."""
    return any(each.isdigit() or each in "!@#%^&*+$" for each in value)


def is_wordy(value: str, share: float = LIMITS.wordy) -> bool:
    """Whether this share of a value is words, as in a long name."""
    return sum(map(len, VALUES.word.findall(value))) / max(1, len(value)) >= share


def is_password(value: str) -> bool:
    """Whether a value after a word like `password` may be one: no placeholder, field, path or sentence."""
    bare = value.strip()
    if not LIMITS.password_chars <= len(bare) <= LIMITS.most_password_chars or VALUES.placeholder.search(bare):
        return False
    if bare.lower().strip("!?*[]") in _DESCRIPTIONS:
        return False
    if re.search(r"\s", bare):
        return _is_passphrase(bare)
    return _is_password_name(bare) if VALUES.name.fullmatch(bare) else not VALUES.path.match(bare)


def _is_password_name(name: str) -> bool:
    """Whether a possible name is rather a password: no reference, constant, or words about a password."""
    digits, keyword = sum(map(str.isdigit, name)), VALUES.keyword.search(name)
    if VALUES.reference.search(name):
        return digits > 0 and not keyword
    if not keyword:
        return "_" not in name or not name.isupper()
    parts = len(VALUES.part.findall(name))
    is_phrase = parts == 1 or (parts >= LIMITS.sentence_words and "_" not in name)
    return is_phrase or digits > 1 or VALUES.digit_inside.search(name) is not None


def _is_passphrase(text: str) -> bool:
    """Whether a text with blanks is rather a passphrase than a sentence."""
    found, count = re.findall(r"[a-z]+", text.lower()), len(text.split())
    is_label = text[0].isupper() and not text.istitle() and not VALUES.mixed.search(text)
    if is_label or not 2 <= count <= LIMITS.passphrase_words or VALUES.no_phrase.search(text):
        return False
    is_sentence = VALUES.keyword.search(text) or not _SENTENCE_WORDS.isdisjoint(found)
    return not is_sentence and sum(map(len, found)) > len(text) // 2


def looks_random(value: str) -> bool:
    """Whether a value looks like a key: long, with letters and digits, no version, date, name or path."""
    digits = sum(map(str.isdigit, value))
    if len(value) < LIMITS.random_chars or not 0 < digits < len(value) or not any(map(str.isalpha, value)):
        return False
    if VALUES.placeholder.search(value) or VALUES.not_random.search(value) or is_wordy(value, LIMITS.identifier):
        return False
    return entropy(value) > LIMITS.random_bits and (digits >= 2 or len(value) >= 16) and not _is_worded(value)


def _is_worded(value: str) -> bool:
    """Whether a value is words with a number, as `sha256`, `utf-8-sig` or `test_case_12` are."""
    parts = re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", value)
    worded = sum(map(len, filter(_is_word_with_number, parts)))
    return worded >= LIMITS.worded * sum(map(len, parts)) and not re.search(r"\d[A-Za-z]+\d", value)


def _is_word_with_number(part: str) -> bool:
    letters = re.sub(r"\d+[a-z]{0,2}\Z", "", part)
    is_word = not letters or (letters.isalpha() and (letters.islower() or letters.isupper() or is_wordy(letters)))
    return is_word and len(part) - len(letters) <= 4


def has_opaque_run(line: str) -> bool:
    """Whether a line shows random text that the text before it does not call a hash or identifier."""
    return any(_is_key(line, *found.span()) for found in RUNS.run.finditer(line))


def _is_key(line: str, start: int, end: int) -> bool:
    setting = RUNS.setting.match(line, start, end)
    start = setting.end() if setting else start
    value, before = line[start:end].strip("./="), line[max(0, start - 60) : start]
    if len(value) < LIMITS.opaque_chars or line.startswith("//", start) or RUNS.uuid.search(value):
        return False
    if not is_opaque(value) or (RUNS.digest.search(before) and not RUNS.paired.search(before)):
        return False
    if RUNS.url.search(before) and not RUNS.parameter.search(before):
        return False
    digits = value.removeprefix("0x")
    if not RUNS.hex.match(digits):
        return True
    is_bare, size = digits == value, len(digits)
    if size in LIMITS.hash_chars and (size != 32 or not is_bare):
        return RUNS.given.search(before) is not None
    return is_bare and not RUNS.names_file.match(line, end)


def is_opaque(run: str, least: int = LIMITS.piece_chars) -> bool:
    """Whether most of a run is random characters: hexadecimal, or letters and digits."""
    if VALUES.alphabet.search(run):
        return False
    pieces = RUNS.piece.findall(run)
    joined, size = "".join(pieces), sum(map(len, pieces))
    is_base64 = size >= max(LIMITS.opaque_chars, 6 * len(pieces)) and all(sum(map(kind, joined)) > 1 for kind in KINDS)
    if is_base64 and _is_random(joined):
        return True
    random = sum(len(piece) for piece in pieces if len(piece) >= least and _is_random(piece))
    return size > 0 and random >= LIMITS.opaque * size


def _is_random(piece: str) -> bool:
    """Whether a piece is random: hexadecimal digits that spell no text, or characters that no name has."""
    digits, changes = sum(map(str.isdigit, piece)), _changes(piece) / len(piece)
    if digits == len(piece):
        return False
    if digits < 2:
        return len(piece) >= 12 and changes > 0.3 and surprise(piece) >= LIMITS.mixed_bits
    if RUNS.hex.match(piece):
        spells = len(piece) % 2 == 0 and len(piece) >= LIMITS.text_digits and bytes.fromhex(piece).isascii()
        return entropy(piece) > 2.6 and digits < 0.9 * len(piece) and not spells
    is_varied = changes >= LIMITS.changes and surprise(piece) + LIMITS.change_bits * changes >= LIMITS.score
    return is_varied and entropy(piece) > 2.8


def _changes(piece: str) -> int:
    return len(RUNS.change.findall(piece)) - len(RUNS.camel.findall(piece))


def surprise(piece: str) -> float:
    """Bits per pair of letters within words, by their frequency in code and prose."""
    pairs = [pair for word in RUNS.letters.findall(piece) for pair in pairwise(word.lower())]
    bits = sum(_BIGRAMS[ord(first) - 97][ord(second) - 97] for first, second in pairs)
    return (2 * 5.5 + bits) / (2 + len(pairs))


def start_of_random(text: str, before: str) -> int | None:
    """Where random characters begin in a text after `before`, 0 if they continue it; None without any."""
    head = before[before.rfind("\n") + 1 :][-LIMITS.run_chars :]
    for found in RUNS.run.finditer(head + text):
        start = found.start() + found[0].rfind("=", 0, -1) + 1
        run = found[0][start - found.start() :]
        if found.end() > len(head) and (RUNS.uuid.search(run) or is_opaque(run, LIMITS.begun_chars)):
            return max(0, start - len(head))
    return None


def password_look(word: str) -> int:
    """How certainly a word is a password by itself: `SIGNED`, `MIXED`, `WORDS_AND_NUMBER`, or 0 if it is none."""
    if RUNS.groups.fullmatch(word):
        return MIXED
    if not RUNS.typed.fullmatch(word) or RUNS.not_typed.search(word) or VALUES.placeholder.search(word):
        return 0
    if RUNS.signed.search(word):
        return SIGNED
    is_mixed = any(map(str.islower, word)) and any(map(str.isupper, word)) and _changes(word) > 0.3 * len(word)
    if is_mixed or RUNS.inside.search(word):
        return MIXED
    return WORDS_AND_NUMBER if RUNS.numbered.fullmatch(word) else 0
