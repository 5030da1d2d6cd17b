"""Filter source files: the language of a file, and the reason why a file is dropped."""

import math
import re
from collections import Counter
from pathlib import PurePosixPath
from posixpath import splitext
from string import digits

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

SUFFIXES = {
    "python": (".py",),
    "javascript": (".js", ".mjs", ".jsx"),
    "typescript": (".ts", ".mts", ".tsx"),
    "go": (".go",),
    "rust": (".rs",),
    "c": (".c",),
    "cpp": (".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"),
    "java": (".java",),
    "lua": (".lua",),
    "shell": (".bash", ".sh", ".zsh"),
    "json": (".json",),
    "yaml": (".yaml", ".yml"),
    "toml": (".toml",),
    "html": (".html",),
    "css": (".css", ".scss"),
}

_LANGUAGES = {suffix: language for language, suffixes in SUFFIXES.items() for suffix in suffixes}

_DROPPED_FOLDERS = frozenset(
    """__snapshots__ _vendor _vendored extern externals fixtures migrations node_modules snapshots
    test-data test_data testdata third-party third_party thirdparty vendor vendored""".split()  # noqa: SIM905
)
_BUILT_FOLDERS = frozenset(("build", "bundles", "cjs", "commonjs", "dist", "esm", "umd"))

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
_SECRET_MARKS = (
    *("PRIVATE KEY", "AKIA", "ASIA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "xox", "sk_live_", "AIza"),
    "glpat-",
)
"""One of these is in whatever `_SECRETS` finds; looking for them takes a tenth of the time."""

_QUOTED = re.compile(r"[\"'][A-Za-z0-9+/=_-]{24,}[\"']")
"""Is in whatever `_ASSIGNED` finds; the other pattern, which ignores case, takes ten times as long."""

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
    if not _DROPPED_FOLDERS.isdisjoint(folders):
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
    if any(mark in text for mark in _SECRET_MARKS) and _SECRETS.search(text):
        return True
    return bool(_QUOTED.search(text)) and any(_looks_random(value) for value in _ASSIGNED.findall(text))


def _looks_random(value: str) -> bool:
    counts = Counter(value)
    bits = -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())
    return bits > MIN_SECRET_BITS and any(map(str.isdigit, value)) and any(map(str.isalpha, value))
