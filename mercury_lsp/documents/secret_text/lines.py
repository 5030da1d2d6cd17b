"""Whether one line shows a secret: by its value alone, or by the words and shapes around it."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from mercury_lsp.documents.secret_text import values
from mercury_lsp.documents.secret_text.data import LIMITS, read, shapes, words
from mercury_lsp.documents.secret_text.values import MIXED, SIGNED, WORDS_AND_NUMBER

KEYS, LINES, COMMANDS, ADDRESSES = shapes("keys"), shapes("lines"), shapes("commands"), shapes("addresses")
CLEAR = tuple(vars(shapes("clear")).values())

CACHED_LINES, CACHED_NAMES = 2048, 8
"""Remembered verdicts on suspicious lines, and texts with the places of their names."""

COMMAND_WORDS = tuple(each for each in words("commands") if not any(word in each for word in words("words")))
"""Parts of commands, calls and statements, in lower case, without a word like `password`."""

CODE_LANGUAGES, COMMAND_LANGUAGES, MARKUP_LANGUAGES = (
    frozenset(words(f"{kind}_languages")) for kind in ("code", "command", "markup")
)
"""In code a word without quotes is a name, in all other languages, also unknown ones, a value; in commands a value may
follow its name without a sign in between; in markup, which is code, the text is prose."""

_Found = re.Match[str]


@cache
def issuer_pattern() -> re.Pattern[str]:
    """All tokens of `issuers.txt`, not after a letter or digit. Compiling takes 0.1 s."""
    listed = [line.split(" ", 1)[1] for line in read("issuers.txt").splitlines() if line and not line.startswith("#")]
    return re.compile(r"(?<![A-Za-z0-9])(?:" + "|".join(listed) + ")")


@lru_cache(CACHED_LINES)  # a key changes one of the lines around the cursor
def is_suspect(line: str, language_id: str) -> bool:
    """Whether a line may show a secret: a few in a hundred lines of code do. Costs a fifth of examining the line."""
    low = line.lower()
    if LINES.any_word.search(low) or LINES.suspect.search(line) or any(map(low.__contains__, COMMAND_WORDS)):
        return True
    if any(map(_may_be_token, LINES.run.findall(line))):
        return True
    if language_id in CODE_LANGUAGES - MARKUP_LANGUAGES:
        return LINES.suspect_string.search(line) is not None
    return LINES.cue.search(low) is not None or LINES.suspect_text.search(line) is not None


def _may_be_token(run: str) -> bool:
    if any(map(str.isdigit, run)):
        return True
    return len(run) >= LIMITS.undigited_chars and not run.islower() and not run.isupper() and not values.is_wordy(run)


@lru_cache(CACHED_LINES)
def is_secret_line(line: str, language_id: str) -> bool:
    """Whether a line looks like a secret."""
    if not is_suspect(line, language_id):
        return False
    low, is_code = line.lower(), language_id in CODE_LANGUAGES
    is_text = not is_code or language_id in MARKUP_LANGUAGES
    if (
        KEYS.key_mark.search(line)
        or (any(map(_may_be_token, LINES.run.findall(line))) and _has_token(line))
        or (":" in line and _has_any(line, ADDRESSES.user, ADDRESSES.source, ADDRESSES.host))
        or any(map(values.looks_random, ADDRESSES.token.findall(line)))
        or any(map(values.is_opaque, ADDRESSES.path.findall(line)))
        or (not is_code and "*" in line and _has_any(line, ADDRESSES.chap))
        or (LINES.any_word.search(low) and _has_named_value(line, is_code, language_id))
        or (LINES.any_command.search(low) and _has_command_secret(line))
        or (LINES.quoted_mnemonic if is_code and not LINES.wallet.search(line) else LINES.mnemonic).search(line)
        or (language_id == "sql" and LINES.sql_setting.match(line) and is_secret_line(line, "yaml"))
    ):
        return True
    if not any(map(str.isdigit, line)):
        return False
    has_cue = (LINES.cue if is_text else LINES.code_cue).search(low) is not None
    least = WORDS_AND_NUMBER if has_cue else MIXED if not is_code and LINES.pair.match(line) else SIGNED
    if shows_password(line, is_text, least):
        return True
    if is_text or (found := LINES.comment.search(line)) is None or not LINES.cue.search(found["text"].lower()):
        return False
    return shows_password(found["text"], True, MIXED if LINES.code_cue.search(low) else SIGNED)


def shows_password(line: str, is_text: bool, least: int) -> bool:
    """Whether a word of a text, or a string of code, is a password with this certainty (`values.password_look`)."""
    typed = LINES.tokens.findall(line) if is_text else LINES.strings.findall(line)
    found = (word for word in typed if values.password_look(word.strip("`*_.,;:()<>|")) >= least)
    return any(is_text or not LINES.code_cue.search(word.lower()) for word in found)


def _has_any(line: str, *each: re.Pattern[str]) -> bool:
    """Whether the last group of one of the shapes is a password."""
    return any(values.is_password(found[found.lastgroup or 0]) for shape in each for found in shape.finditer(line))


def _has_token(line: str) -> bool:
    if any("EXAMPLE" not in found[0] for found in issuer_pattern().finditer(line)):
        return True
    if not any(map(str.isdigit, line)):
        return False
    if KEYS.hashed.search(line) or (values.has_opaque_run(line) and not KEYS.embedded.search(line)):
        return True
    return any(map(values.looks_random, LINES.named_issuer.findall(line)))


def _has_command_secret(line: str) -> bool:
    """Whether a command, a login call, a line of .netrc or an SQL statement has a password."""
    options = (COMMANDS.pair, COMMANDS.long, COMMANDS.sshpass, COMMANDS.short) if COMMANDS.program.search(line) else ()
    return _has_any(line, *CLEAR, *options)


def named(shape: re.Pattern[str], line: str) -> Iterator[_Found]:
    """The matches of a shape that begins with a secret's name."""
    return filter(None, (shape.match(line, at) for at in _names(line)))


@lru_cache(CACHED_NAMES)
def _names(line: str) -> tuple[int, ...]:
    low = line.lower()
    return tuple(found.start() for found in LINES.word.finditer(low if len(low) == len(line) else line))


@lru_cache(CACHED_LINES)
def has_named_alone(line: str) -> bool:
    """Whether a line ends with the name of a secret, without a value."""
    line = line.rstrip()
    is_map = LINES.maps.match(line) is not None
    return any(is_map or LINES.names.search(line[: found.start()]) for found in named(LINES.named_alone, line))


def _has_named_value(line: str, is_code: bool, language_id: str) -> bool:
    """Whether a line has a secret's name and value, or a header of authorization."""
    line = LINES.long_string.sub(r'["\1"]', line.replace("'static", ""))
    if LINES.pin.search(line) or _has_bare(line, language_id):
        return True
    if any(_is_quoted_secret(found, is_code) for found in named(LINES.quoted, line)):
        return True
    given = [found["value"] for shape in (LINES.default, LINES.element) for found in named(shape, line)]
    settings = (found for found in named(LINES.setting, line) if not (found["value"] and is_code))
    given += [found["value"] or found["quoted"] for found in settings]
    runs = ADDRESSES.run.findall(line) if "uthorization" in line else ()
    is_header = any(values.looks_random(run) and not values.is_wordy(run) for run in runs)
    return is_header or any(map(values.is_password, given)) or _has_any(line, LINES.substituted)


def _is_quoted_secret(found: _Found, is_code: bool) -> bool:
    """Whether a quoted value is a secret, judged by the name before it and how it is assigned."""
    line, value, rest, gap, close, compared = found.string, *found.group("quoted", "rest", "gap", "close", "compared")
    before, after = line[: found.start()], line[found.end() + 1 :]
    if (
        LINES.looked_up.search(gap)
        or (LINES.key_begins.search(gap) and LINES.key_ends.match(after))
        or (found["blank"] is not None and after.strip() == "{")  # a block with names
        or (close and "::" in before.rpartition(close[:1])[2])  # the name of a type
    ):
        return False
    if values.looks_random(value):
        return True
    name = _strong_name(found, is_code)
    if name is None or not values.is_password(value) or LINES.about.search(rest):
        return False
    if name == "pass" and rest.strip("_0123456789"):
        return False
    is_verb = name == "pass" and not re.search(r"\w\Z", before)
    if compared is not None:
        if compared.strip() != ",":
            return values.has_sign(value) or (len(value) >= LIMITS.compared_chars and "=" in compared)
        if close[-1:] not in ("'", '"', "`"):
            return LINES.compares.search(before) is not None
        is_plural = (name + rest.lower()).endswith(("words", "secrets"))  # kinds of resources
        is_pair = LINES.pair_begun.search(before) and after.lstrip()[:1] in ("]", ")", "}")
        return values.has_sign(value) or (not is_plural and bool(is_pair or LINES.passes.search(before)))
    if found["called"] is not None:
        if "." in rest:
            return LINES.sets.search(rest) is not None or (".equal" in rest and values.has_sign(value))
        return not LINES.asks.search(before) and not re.match(r"\s?,\s?[A-Za-z]", after)
    if found["blank"] is not None:
        return not is_verb and not gap.strip(" \t(\"'")
    is_call = LINES.calls.search(gap) and not LINES.wrappers.search(gap) and not values.has_sign(value)
    return found["typed"] is not None or not is_call


def _strong_name(found: _Found, is_code: bool) -> str | None:
    """The name, in lower case, if almost all its values are secrets; `token` alone only counts in settings."""
    name = found["strong"] or ("" if is_code or found["rest"] else found["weak"])
    return name.lower() if found["strong"] or name.lower() == "token" else None


def _has_bare(line: str, language_id: str) -> bool:
    """Whether a line has a secret without quotes: anywhere outside code, in code in comments and strings."""
    line, is_code = LINES.template.sub("x", line), language_id in CODE_LANGUAGES
    is_command = language_id in COMMAND_LANGUAGES and line.lstrip()[:1] != "#"
    is_setting = not is_code or LINES.alone.match(line) or LINES.documented.match(line)
    if is_setting and any(_is_bare_secret(found, False, is_command) for found in named(LINES.bare, line)):
        return True
    texts = [] if not is_code else [line] if language_id in MARKUP_LANGUAGES else _free_texts(line)
    return any(_is_bare_secret(found, is_code=True) for text in texts for found in named(LINES.bare, text))


def _is_bare_secret(found: _Found, is_code: bool, is_command: bool = False) -> bool:
    """Whether a value follows a name; words of sentences and of prose in code are not values."""
    prose = re.search(r"\||is|was", found["sep"] or "")
    is_free = is_code or (prose is not None and (prose[0] == "|" or LINES.adjective.search(found["text"]) is not None))
    text, sep = LINES.trailing.sub("", found["text"]).strip(), found["sep"]
    is_free = is_free and text[:1] != "`" and (sep or "")[-1:] not in ("{", "*", "_")  # marked as it is to be typed
    text = re.sub(r"^\{([^{}:\s]+)\}$", r"\1", text.lstrip("`"))
    token = LINES.token.match(text)
    if token is None or text[token.end() :][:1] in ("(", "[") or text[-1] == ":":
        return False
    value, is_whole = token[0].rstrip(".,:;!?*/"), token.end() == len(text)
    if value[:1] == "&" and is_whole:
        return False  # an anchor
    if values.looks_random(value):
        return True
    if _strong_name(found, is_code or sep is None) is None or LINES.about.search(found["rest"]):
        return False
    if sep is None:
        if is_free or not is_whole or not values.is_password(value):
            return False
        before = found.string[: found.start()]
        is_given = len(found["gap"]) > 1 or LINES.command.match(before) or (is_command and not found["rest"])
        return values.has_sign(value) or bool(is_given)
    is_whole = is_whole or LINES.next_setting.match(text, token.end()) is not None
    if values.is_password(value) and (values.has_sign(value) or sep == "=" or (is_whole and not is_free)):
        return True
    return not is_free and values.is_password(text)


def _free_texts(line: str) -> list[str]:
    """The parts of a line of code that may be prose or settings: its comment and its strings."""
    strings = [part for quote in "\"'`" for part in line.split(quote)[1::2] if len(part) >= LIMITS.free_text_chars]
    return [found["text"] for found in LINES.comment.finditer(line)] + strings
