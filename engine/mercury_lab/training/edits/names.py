"""Invent names that a programmer might choose, in the style of the old ones."""

import keyword
import random
import re
from collections.abc import Container

MAX_NAME_ATTEMPTS = 8

_NAME_PART = re.compile(r"[A-Z][A-Z\d]*(?![a-z])|[A-Z]?[a-z][a-z\d]*|\d+|[^\W\d_]+")
_SNAKE_CASE_LANGUAGES = frozenset(("python", "rust", "c", "cpp", "lua", "shell", "json", "yaml", "toml"))
"""Languages in which names of several words get underscores unless the old name shows another style."""

_SEPARATOR = re.compile(r"[-_]")

_COMMON_WORDS = """
    active actual all base batch buffer cached child client config content context count current data default entry
    event field file final first group handler id index info input inner item key last limit line list local main map
    max message mode model name next node number options order original other outer output owner page params parent
    path pattern payload position previous query raw record request response result root row scope section selected
    session settings size source start state step stream table target task temp text token total type unique update
    user value visible width
    """.split()  # noqa: SIM905

_SYNONYM_GROUPS = (
    {"get", "fetch", "load", "read", "find"},
    {"make", "create", "build", "new"},
    {"remove", "delete", "drop", "clear"},
    {"add", "append", "insert", "push"},
    {"check", "validate", "verify", "ensure"},
    {"set", "update", "assign"},
    {"run", "execute", "process", "handle"},
    {"start", "begin", "open"},
    {"stop", "end", "close", "finish"},
    {"count", "size", "length", "total"},
    {"result", "output", "value", "response"},
    {"item", "entry", "element", "record"},
    {"data", "payload", "content", "body"},
    {"path", "filename", "location", "file"},
    {"config", "options", "settings", "params"},
    {"parse", "decode", "convert"},
    {"msg", "message", "text"},
    {"idx", "index", "position"},
    {"dir", "directory", "folder"},
    {"ctx", "context", "scope"},
    {"err", "error", "failure"},
    {"req", "request", "query"},
    {"name", "label", "title", "key"},
)
_SYNONYMS: dict[str, list[str]] = {}
for _group in _SYNONYM_GROUPS:
    for _word in sorted(_group):
        _SYNONYMS.setdefault(_word, []).extend(sorted(_group - {_word}))


def new_name(old: str, taken: Container[str], language: str, rng: random.Random) -> str | None:
    """A different name in the style of the old one that is not in `taken`; None if no attempt finds one."""
    parts = _NAME_PART.findall(old)
    for _ in range(MAX_NAME_ATTEMPTS if parts else 0):
        new = _joined(_changed(parts, rng), old, language in _SNAKE_CASE_LANGUAGES)
        is_name = new.replace("-", "_").replace("$", "_").isidentifier() and not keyword.iskeyword(new)
        if is_name and new != old and new not in taken:
            return new
    return None


def _changed(parts: list[str], rng: random.Random) -> list[str]:
    at = rng.randrange(len(parts))
    chance = rng.random()
    alike = _SYNONYMS.get(parts[at].lower())
    if alike and chance < 0.6:
        return [*parts[:at], rng.choice(alike), *parts[at + 1 :]]
    if len(parts) > 1 and chance < 0.3:
        return [*parts[:at], *parts[at + 1 :]]
    if chance < 0.6 and len(parts) < 4:
        at = rng.choice((0, len(parts)))
        return [*parts[:at], rng.choice(_COMMON_WORDS), *parts[at:]]
    return [*parts[:at], rng.choice(_COMMON_WORDS), *parts[at + 1 :]]


def _joined(parts: list[str], old: str, is_snake: bool) -> str:
    """The parts joined in the style of the old name."""
    bare = old.strip("-_$")
    head, _, tail = old.partition(bare)
    separator = _SEPARATOR.search(bare)
    if bare.isupper() and len(bare) > 1:
        name = (separator[0] if separator else "_").join(parts).upper()
    elif separator or (is_snake and bare == bare.lower()):
        name = (separator[0] if separator else "_").join(parts)
        name = name if bare != bare.lower() else name.lower()
    else:
        name = "".join(part[:1].upper() + part[1:] for part in parts)
        name = name if bare[:1].isupper() else name[:1].lower() + name[1:]
    return head + name + tail
