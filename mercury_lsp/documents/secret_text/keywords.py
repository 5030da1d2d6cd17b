"""Values behind words like `password` and `api_key`: in assignments, arguments, defaults, attributes and comments."""

import re
from collections.abc import Iterator

from mercury_lsp.documents.secret_text.values import is_dense, is_password, looks_random

UNQUOTED_LANGUAGES = frozenset(
    ("plaintext", "shellscript", "sh", "bash", "zsh", "dotenv", "ini", "properties", "dockerfile", "yaml", "makefile")
)
"""Languages in which values need no quotes."""

WORDS = (
    *("pass", "pwd", "secret", "token", "key", "auth", "cred", "bearer", "session", "cookie", "signature", "salt"),
    *("jwt", "sig", "pw", "otp", "seed", "pin", "dsn", "nonce", "webhook"),
)
"""Parts of the words below in lower case: a line without any of them is not examined here."""

_WORD = re.compile("|".join(WORDS))

_STRONG = (
    r"(?:pass(?:words?|wd|wort|phrase|code)|pwd|secret|(?<![a-z])(?:pass|pw)(?![a-z])|(?<![a-z])pin_?code"
    r"|(?-i:(?<=[a-z0-9])P(?:ass|wd|w)(?![a-z])))"
)
"""Words behind which almost any value is a secret."""

_OWNERS = (
    *("api", "access", "account", "private", "signing", "encryption", "master", "app", "auth", "client", "consumer"),
    *("deploy", "license", "service", "shared", "storage"),
)
_OWNED = r"(?:(?<![a-z])|" + "|".join(rf"(?<={owner})" for owner in _OWNERS) + ")"
_WEAK = (
    rf"(?:token|bearer|credential|cred(?![a-z])|auth(?:orization)?(?![a-z])"
    rf"|session(?:[_-]?id)?|cookie|signature|salt|{_OWNED}key|(?<![a-z])(?:jwt|sig|otp|seed|nonce|dsn|webhook))"
)
"""Words behind which only a value that looks random is a secret."""

_NAME = rf"(?:(?P<strong>{_STRONG})|{_WEAK})(?P<rest>[\w.-]{{0,40}})"

_QUOTED = re.compile(
    _NAME + r"(?P<close>\\?[\"'`\])>]{0,3})(?P<gap>[^\"'`;\n]{0,80}?)\\?(?P<quote>\"\"\"|'''|[\"'`])", re.IGNORECASE
)
_UNQUOTED = re.compile(
    _NAME + r"[\"'`\])]{0,2}(?P<gap>[ \t]{0,8}(?:=>|:=|\?=|[=:>]|\bis\b)[ \t]{0,8}|[ \t]{1,4})"
    r"(?P<value>[^\s\"'`;(){}\[\]<>]+)",
    re.IGNORECASE,
)
_SETTING = re.compile(
    _STRONG + r"[^\n]{0,120}?\b(?:default|value|val|content)\w{0,8}\\?[\"'`]?\s{0,4}[:=]\s{0,4}\\?(?P<quote>[\"'`])",
    re.IGNORECASE,
)
"""A secret's name, and further on its value under a name of its own, as in attributes and lists of settings."""

_SUBSTITUTED = re.compile(r"\{[\w.]{0,40}?" + _STRONG + r"[\w.]{0,40}:[-=]?(?P<value>[^\s{}\"'`]{4,})\}", re.IGNORECASE)
"""A reference to a setting with a default, as `${db.password:value}`."""

_ELEMENT = re.compile(_STRONG + r"[\w.-]{0,40}[\"']?[^<>\n]{0,40}>(?P<value>[^<>\s]{4,})</", re.IGNORECASE)
"""An element of markup whose name or attribute is a secret's."""

NAMED_AT_END = (
    _NAME
    + r"\\?[\"'`\])>]{0,3}(?:[^\"'`;#\n]{0,60}?(?:=>?|:=?|->|\(|\||>-?|,|\?\?|\|\||\+)-?)[ \t]{0,8}(?:[(\[]|[\"']{3})?"
)
"""The end of a line that names a secret, before a value on the next one."""

_SEPARATOR = re.compile(r"[=:,(|?>{]|default|\b(?:is|to|by|as|or)\b", re.IGNORECASE)
_COMPARED = re.compile(r"[!=<>]=|~=|\bin\b|\bnot\b|equals|\bis\b")
_LOOKED_UP = re.compile(
    r"(?:get\w*|env\w*|read\w*|load\w*|open|find\w*|fetch\w*|lookup\w*|ask\w*|prompt|input|query\w*|select\w*|require\w*"
    r"|import|translate|gettext|label|print\w*|log\w*|warn\w*|\w*error|\w*exception|raise|throw|format|assert\w*|config"
    r"|settings?|params?|args?|option|fields?|column|header|request|form|data|props|attr\w*|match\w*|test|search|split"
    r"|replace|join|has\w*|contains|pop|startswith|endswith|includes|encode|decode|strip|len|strlen|var|\bt|_)\s{0,4}[\[(]\s{0,4}[bfru]?\Z"
    r"|\b(?:help|label|message|msg|placeholder|description|title|prompt|hint|summary|metavar|dest|name|id|type|class\w*"
    r"|autocomplete|path|href|src)\s{0,4}[=:]\s{0,4}\[?[bfru]?\Z",
    re.IGNORECASE,
)
"""The end of a gap before a string that names a value or speaks to the user."""

_COMMENT = re.compile(r"(?://|#|--|/\*|<!--|;|^\s*\*|\"\"\"|''')(?P<text>.*)")

MIN_FREE_TEXT_CHARS = 8
"""Shortest string that may hold the name of a secret and its value."""


def has_secret_value(line: str, language_id: str) -> bool:
    """Whether a line names a secret and gives its value."""
    if "'static" in line:
        line = line.replace("'static", "")
    if _has_quoted(line, language_id) or _has_unquoted(line, language_id):
        return True
    if any(is_password(_until(line, found.end(), found["quote"])) for found in _named(_SETTING, line)):
        return True
    if "</" in line and any(is_password(found["value"]) for found in _named(_ELEMENT, line)):
        return True
    return any(is_password(found["value"]) for found in _SUBSTITUTED.finditer(line))


def _named(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The matches of a pattern that begins with the name of a secret; it is tried at parts of such names only."""
    low = text.lower()
    for word in _WORD.finditer(low if len(low) == len(text) else text):
        if found := pattern.match(text, word.start()):
            yield found


def _has_quoted(line: str, language_id: str) -> bool:
    for found in _named(_QUOTED, line):
        gap = found["gap"]
        if _LOOKED_UP.search(gap) or not (gap or found["close"]):
            continue
        value = _until(line, found.end(), found["quote"])
        is_settings = language_id in UNQUOTED_LANGUAGES or (gap.isspace() and "#define" in line)
        if _is_secret_value(value, gap, bool(found["strong"]), is_settings):
            return True
    return False


def _is_secret_value(value: str, gap: str, is_strong: bool, is_settings: bool) -> bool:
    """Whether a quoted value is a secret behind such a word and the text between them."""
    if not is_strong or (gap and not _SEPARATOR.search(gap) and not is_settings):
        return looks_random(value) or is_dense(value)
    if _COMPARED.search(gap):
        return looks_random(value) or (is_password(value) and any(map(str.isdigit, value)))
    return is_password(value)


def _until(line: str, start: int, quote: str) -> str:
    """The text up to the quote that closes it, or to the end of the line."""
    if line[start - 2 : start - 1] == "\\":  # the string is inside of another one
        end = line.find("\\", start)
        return line[start:end] if end >= 0 else line[start:]
    end = start
    while end < len(line) and line[end] not in (quote[0], "\n", "\r"):
        end += 2 if line[end] == "\\" else 1
    return line[start:end]


def _has_unquoted(line: str, language_id: str) -> bool:
    """Values without quotes: anywhere in languages of settings, else in comments and in strings."""
    is_settings = language_id in UNQUOTED_LANGUAGES
    for text in (line,) if is_settings else _free_texts(line):
        for found in _named(_UNQUOTED, text):
            value, is_assigned = found["value"].rstrip(".,:!?*/"), bool(found["gap"].strip())
            if looks_random(value):
                return True
            if found["strong"] and is_assigned and is_password(value) and (is_settings or _has_sign(value)):
                return True
    return False


def _has_sign(value: str) -> bool:
    """Whether a value has digits or signs that words of prose lack."""
    return any(each.isdigit() or each in "!@#%^&*+" for each in value)


def _free_texts(line: str) -> Iterator[str]:
    """The parts of a line of code that may be prose or settings: its comment and its strings."""
    if found := _COMMENT.search(line):
        yield found["text"]
    for quote in "\"'`":
        yield from (part for part in line.split(quote)[1::2] if len(part) > MIN_FREE_TEXT_CHARS)
