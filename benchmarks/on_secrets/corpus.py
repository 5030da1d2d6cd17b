"""Plants secrets: at least 300 formats in 13 languages, made of random characters with a fixed seed.

Nothing here is a secret, and no file holds text that looks like one: tokens are put together when they are planted.
"""

import random
import re
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

HERE = Path(__file__).parent

LANGUAGES = (
    *("python", "javascript", "typescript", "go", "rust", "c", "cpp", "java", "lua", "shellscript", "json", "yaml"),
    "toml",
)

MIN_PART_CHARS = 5
"""Shortest random part of a secret whose appearance counts as a leak."""

_ALPHABETS = {
    "w": string.ascii_letters + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + "234567",
    "h": "0123456789abcdef",
    "b": string.ascii_letters + string.digits + "-_",
    "d": string.digits,
    "s": string.ascii_letters + string.digits + "+/",
}
_SLOT = re.compile(r"<(?:(p)|([wluhbds])(\d+))>")

PASSWORD_STEMS = ("hun", "swor", "letme", "Tr0u", "qwer", "p4ss", "Sum", "c0rr", "zx", "1q2w", "dra", "Admi")
PASSWORD_ENDS = (
    "ter2",
    "dfish99",
    "in!2024",
    "b4dor&3",
    "ty#123",
    "w0rd1",
    "mer2024!",
    "ect-h0rse",
    "cvbnm,1",
    "3e4r5t",
    "g0nfly7",
    "n@123",
)
FORMS = ("assigned", "annotated", "attribute", "argument", "setter", "default", "fallback", "compared", "single")
"""Ways to write a name with its value, each with several names."""

WORDS = ("swordfish", "letmein", "Manchester")
"""Passwords that are words."""

NAMES = (
    "password",
    "db_password",
    "DB_PASS",
    "userPwd",
    "adminPassword",
    "passphrase",
    "client_secret",
    "SECRET_KEY",
    "dbPass",
    "passwd",
)


@dataclass(frozen=True, slots=True)
class Planted:
    """One secret in one language."""

    kind: str
    """The class that it is counted under."""
    name: str
    language: str
    text: str
    """One or several lines, without a line break at the end."""
    parts: tuple[str, ...]
    """Texts that must not appear anywhere."""
    path: str = ""
    """The name of the file whose whole text this is; empty for lines that stand in a file of others."""


Make = Callable[[str, str], Planted]
"""Makes a format's secret in a language; takes the format's name and the language."""


class _Chance:
    """Random texts that depend on the format and the language only."""

    def __init__(self, *key: str):
        self._random = random.Random("/".join(key))
        self.parts: list[str] = []

    def filled(self, text: str) -> str:
        """A text with its slots filled; the parts are remembered."""
        return _SLOT.sub(lambda found: self._part(found), text)

    def _part(self, found: re.Match[str]) -> str:
        made = self.password() if found[1] else self.characters(found[2], int(found[3]))
        if len(made) >= MIN_PART_CHARS and found[2] != "d":
            self.parts.append(made)
        return made

    def characters(self, alphabet: str, count: int) -> str:
        """Random characters; the first of a long text is a letter, and a digit follows soon."""
        made = [self._random.choice(_ALPHABETS[alphabet]) for _ in range(count)]
        if count > 5 and alphabet != "d":
            made[0], made[3] = "d" if alphabet != "u" else "D", "7"
        return "".join(made).replace("--", "-a").replace("__", "_a").rstrip("-_").ljust(count, "x")

    def password(self) -> str:
        """A password of one word with digits or signs."""
        return self._random.choice(PASSWORD_STEMS) + self._random.choice(PASSWORD_ENDS)


def corpus(languages: Sequence[str] = LANGUAGES, seed: int = 0) -> Iterator[Planted]:
    """All formats in these languages; another seed makes other characters."""
    for language in languages:
        for name, make in _formats().items():
            yield make(name if not seed else f"{name} ({seed})", language)


def formats() -> int:
    """Formats per language."""
    return len(_formats())


@cache
def _formats() -> dict[str, Make]:
    made: dict[str, Make] = {}
    for name, shape in _pairs("tokens.txt", " "):
        made[f"issuer {name}"] = _value("issuer", "assigned", "value", shape)
    for number, (name, shape) in enumerate(_pairs("named.txt", " ")):
        made[f"named {name}"] = _value("issuer by name", ("assigned", "argument")[number % 2], name, shape)
    for form in FORMS:
        for number in range(4):
            name = NAMES[(number * 3 + len(form)) % len(NAMES)]
            made[f"{form} {number} {name}"] = _value(form, form, name, "<p>")
        made[f"{form} api_key"] = _value(form, form, "api_key", "<w28>")
        made[f"{form} auth_token"] = _value(form, form, "auth_token", "<h40>")
    for form, word in product(("assigned", "argument", "default", "setter"), WORDS):
        made[f"word {form} {word}"] = _value("plain word", form, "password", word)
    for number in range(2):
        made[f"login {number}"] = _value("argument", "login", "", "<p>")
    for number, name in enumerate(("password", "DB_PASSWORD", "client_secret")):
        made[f"next line {name}"] = _value("next line", "next line", name, "<p>" if number else "<w24>")
        made[f"joined {name}"] = _value("joined", "joined", name, "<w24>")
        made[f"joined below {name}"] = _value("joined", "joined below", name, "<w24>")
    for name in ("github-pat", "stripe", "google", "slack-bot", "aws", "openai"):
        shape = dict(_pairs("tokens.txt", " "))[name]
        made[f"joined {name}"] = _value("joined", "joined", "value", shape)
        made[f"joined below {name}"] = _value("joined", "joined below", "value", shape)
    for number, (kind, text) in enumerate(_pairs("texts.txt", "|")):
        carriers = ("comment",) if kind == "comment" else (("string", "comment")[number % 2],)
        for carrier in carriers:
            made[f"{kind} {number} {carrier}"] = _text(kind, carrier, text)
    made |= {f"unquoted {name}": _unquoted(name) for name in ("DB_PASSWORD", "password", "api_key", "secret")}
    for block in ("RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "PRIVATE KEY", "ENCRYPTED PRIVATE KEY"):
        made[f"block {block}"] = _block(block, 64)
    made["block PGP"] = _block("PGP PRIVATE KEY BLOCK", 64)
    made |= {f"long line {count}": _long_line(count) for count in (700, 1700, 3300)}
    made |= {f"far in a long line {count}": _far_in_line(count) for count in (600, 1100, 2300)}
    return made


def _pairs(file: str, separator: str) -> list[tuple[str, str]]:
    lines = (HERE / file).read_text("utf-8").splitlines()
    parts = (line.partition(separator) for line in lines if line and not line.startswith("#"))
    return [(name, text) for name, _, text in parts]


@cache
def _forms() -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    form = ""
    count = 0
    for line in (HERE / "forms.txt").read_text("utf-8").splitlines():
        if line.startswith("= "):
            form, count = line[2:], 0
        else:
            found[form, LANGUAGES[count]] = line.replace("⏎", "\n")
            count += 1
    return found


def _value(kind: str, form: str, name: str, shape: str) -> Make:
    def make(title: str, language: str) -> Planted:
        chance = _Chance(title, language)
        value = chance.filled(shape)
        middle = len(value) // 2
        text = _forms()[form, language].replace("{n}", name).replace("{v}", value)
        is_joined = "{a}" in text
        text = text.replace("{a}", value[:middle]).replace("{b}", value[middle:])
        parts = (value[:middle], value[middle:]) if is_joined else tuple(chance.parts) or (value,)
        return Planted(kind, title, language, text, tuple(part for part in parts if len(part) >= MIN_PART_CHARS))

    return make


def _text(kind: str, carrier: str, text: str) -> Make:
    def make(title: str, language: str) -> Planted:
        chance = _Chance(title, language)
        filled = chance.filled(text)
        if carrier == "string" or language == "json":
            filled = filled.replace('"', '\\"') if '\\"' not in filled else filled
        return Planted(kind, title, language, _forms()[carrier, language].replace("{t}", filled), tuple(chance.parts))

    return make


def _unquoted(name: str) -> Make:
    """Settings without quotes; in languages of code in a comment."""

    def make(title: str, language: str) -> Planted:
        chance = _Chance(title, language)
        value = chance.filled("<w28>" if name == "api_key" else "<p>")
        forms = {"shellscript": "export {n}={v}", "yaml": "{n}: {v}", "json": '"{n}={v}",'}
        text = forms.get(language) or _forms()["comment", language].replace("{t}", "{n}={v}")
        return Planted(
            "unquoted", title, language, text.replace("{n}", name).replace("{v}", value), tuple(chance.parts)
        )

    return make


def _block(mark: str, width: int) -> Make:
    def make(title: str, language: str) -> Planted:
        chance = _Chance(title, language)
        rows = [chance.characters("s", width) for _ in range(12)] + [chance.characters("s", 22) + "=="]
        rows += ["=" + chance.characters("s", 4)] if "PGP" in mark else []
        lines = ("-" * 5 + f"BEGIN {mark}" + "-" * 5, *rows, "-" * 5 + f"END {mark}" + "-" * 5)
        text = "\n".join(_forms()["rows", language].replace("{t}", line) for line in lines)
        return Planted("block", title, language, text, tuple(row for row in rows if len(row) > 5))

    return make


def _long_line(count: int) -> Make:
    """A key in one line."""

    def make(title: str, language: str) -> Planted:
        chance = _Chance(title, language)
        rows = [chance.characters("s", 64) for _ in range(count // 66)] + [chance.characters("s", 20)]
        key = "\\n".join(("-" * 5 + "BEGIN PRIVATE KEY" + "-" * 5, *rows, "-" * 5 + "END PRIVATE KEY" + "-" * 5))
        text = _forms()["assigned", language].replace("{n}", "value").replace("{v}", key)
        return Planted("long line", title, language, text, tuple(rows))

    return make


def _far_in_line(count: int) -> Make:
    """A token between long texts of one line."""

    def make(title: str, language: str) -> Planted:
        chance = _Chance(title, language)
        prose = "some words of a long text, " * 200
        token = "ghp" + "_" + chance.characters("w", 36)
        text = prose[:count] + " " + token + " " + prose[:800]
        line = _forms()["assigned", language].replace("{n}", "value").replace("{v}", text)
        pieces = tuple(token[at : at + 12] for at in range(4, len(token) - 12, 6))
        return Planted("long line", title, language, line, pieces)

    return make
