"""Filter source files: the language of a file, and the reason why a file is dropped."""

import re
import tomllib
from pathlib import Path, PurePosixPath
from posixpath import splitext
from string import digits

from mercury_lsp.documents.secret_text.values import entropy

MAX_BYTES = 200_000
MAX_DATA_BYTES = 30_000
MIN_TEXT_CHARS = 80
MAX_LINE_CHARS = 1_000
MAX_MEAN_LINE_CHARS = 120
MAX_DIGIT_SHARE = 0.25
"""Share of digits above which a file is a table of numbers rather than code."""

MIN_SECRET_BITS = 3.7
"""Entropy per character above which a quoted value counts as a key; English words and names stay below."""

DATA_LANGUAGES = frozenset(("css", "html", "json", "toml", "yaml"))
"""Languages whose files hold data or markup, not code."""

_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

SUFFIXES = {language: tuple(suffixes) for language, suffixes in _TABLES["suffixes"].items()}
_LANGUAGES = {suffix: language for language, suffixes in SUFFIXES.items() for suffix in suffixes}

_VENDORED_FOLDERS, _BUILT_FOLDERS = (frozenset(_TABLES["folders"][name].split()) for name in ("vendored", "built"))

_CPP = re.compile(r"^\s*(?:class|namespace|template|using)\b|\bstd::", re.M)
_SHELL = re.compile(rb"#!\s*/(?:usr/)?bin/(?:env )?(?:ba|da|z)?sh\b")
_GENERATED = re.compile(
    r"(?:auto(?:matically)?[ -]?|@)generated\b|generated (?:by|from)\b|do not (?:edit|modify)", re.I
)
_COPYLEFT = re.compile(
    r"GNU (?:Lesser |Library |Affero )?General Public Licen[sc]e|SPDX-License-Identifier:\s*[AL]?GPL", re.I
)
_SECRETS = re.compile(
    r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[0-9A-Za-z]{36}"
    r"|\bgithub_pat_\w{60}|\bxox[abposr]-[0-9A-Za-z-]{10}|\bsk_live_[0-9A-Za-z]{20}|\bAIza[0-9A-Za-z_-]{35}\b"
    r"|\bglpat-[0-9A-Za-z_-]{20}"
)
_ASSIGNED = re.compile(
    r"(?:secret|token|passw(?:or)?d|api_?key)\w*[\"']?\s*[:=]\s*[bru]?[\"']([A-Za-z0-9+/=_-]{24,})[\"']", re.I
)


def language_of(path: str, content: bytes) -> str | None:
    """The language by suffix, or by content for headers and files without a suffix; None for everything else."""
    suffix = splitext(path)[1]
    if path.endswith((".min.js", ".min.css", ".d.ts", ".d.mts")):
        return None
    if suffix == ".h":
        return "cpp" if _CPP.search(content.decode("utf-8", "replace")) else "c"
    if not suffix and _SHELL.match(content):
        return "shell"
    return _LANGUAGES.get(suffix)


def path_fault(path: str, language: str) -> str | None:
    """Why the path alone drops a file: vendored or built; None if the file may stay."""
    folders = PurePosixPath(path.lower()).parts[:-1]
    if not _VENDORED_FOLDERS.isdisjoint(folders):
        return "vendored"
    if language in ("javascript", "typescript") and not _BUILT_FOLDERS.isdisjoint(folders):
        return "built"
    return None


def text_of(content: bytes, language: str) -> str | None:
    """The text with plain newlines; None if the file is too large or not UTF-8."""
    if len(content) > (MAX_DATA_BYTES if language in DATA_LANGUAGES else MAX_BYTES) or b"\0" in content:
        return None
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None


def text_fault(text: str) -> str | None:
    """Why the text drops a file: short, minified, table, generated, copyleft or secret; None if it may stay."""
    if len(text.strip()) < MIN_TEXT_CHARS:
        return "short"
    lines = text.splitlines()
    if max(map(len, lines)) > MAX_LINE_CHARS or len(text) > MAX_MEAN_LINE_CHARS * len(lines):
        return "minified"
    if sum(map(text.count, digits)) > MAX_DIGIT_SHARE * len(text):
        return "table"
    if _GENERATED.search(text[:1_500]):
        return "generated"
    if _COPYLEFT.search(text[:5_000]):
        return "copyleft"
    return "secret" if has_secret(text) else None


def has_secret(text: str) -> bool:
    """Whether a known key format occurs, or a random-looking value is assigned to a name like a secret's."""
    return _SECRETS.search(text) is not None or any(map(_looks_random, _ASSIGNED.findall(text)))


def _looks_random(value: str) -> bool:
    return entropy(value) > MIN_SECRET_BITS and any(map(str.isdigit, value)) and any(map(str.isalpha, value))
