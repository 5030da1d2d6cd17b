"""What git ignores: its settings, and the patterns of its ignore files, matched exactly as git does.

Git itself is not run, because a repository can make it start programs. What reads the settings raises NotRead for a
file that exists and cannot be read whole.

Paths and patterns are bytes, as in git: `?` matches one byte. If a pattern has a slash, its literal start is compared
on its own, and only the rest is a wildcard pattern. `a**/b` therefore matches `ax/y/b`, as it does in git.
Source: `dir.c` and `wildmatch.c` of git.
"""

import os
import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from mercury_lsp.context.workspace.reading import MAX_RULES_BYTES, NotRead, read

MAX_INCLUDED = 64
"""Files that the configuration of one repository includes, directly or not."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

MAX_RULES = 10_000
"""Rules of one ignore file."""

MAX_RULE_BYTES = 4_096
"""Longest rule; longer than the paths that systems allow."""

_LINE = re.compile(
    r"""\s*(?:\[\s*(?P<section>[\w.-]+)(?:\s+"(?P<sub>(?:[^"\\]|\\.)*)")?\s*\])?"""
    r"""\s*(?:(?P<name>[A-Za-z][\w-]*)\s*(?:=\s*(?P<value>.*))?)?"""
)
_VALUE = re.compile(r'"(?:[^"\\]|\\.)*"?|\\.|[^"\\#;]|[#;].*')

_STAR, _FOLDERS, _ALL, _NEVER = rb"[^/]*?", rb"(?:[^/]*/)*?", rb".*?", rb"(?!)"
"""Expressions for asterisks: within a name, for whole folders, and for whatever is left. What git never matches."""

_WILDCARDS = {"star": _STAR, "folders": _FOLDERS, "all": _ALL, "any": rb"[^/]", "never": _NEVER}

_SPECIAL = re.compile(rb"[*?\[\\]")
_BYTE = rb"(?:\\.|[^]\\])"
_PIECE = re.compile(
    rb"(?P<folders>(?<![^/])\*\*+/)|(?P<all>(?<![^/])\*\*+(?=\Z|\\/))|(?P<star>\*+)|(?P<any>\?)"
    rb"|(?P<set>\[(?P<not>[!^]?+)(?P<items>(?:\](?:-%b)?)?+(?:\[:[^]]*:\]|%b(?:-%b)?)*+)\])"
    rb"|\\(?P<quoted>.)|(?P<byte>[^\[\\])|(?P<never>.)" % (_BYTE, _BYTE, _BYTE),
    re.DOTALL,
)
"""A piece of a pattern: asterisks, of which two between slashes match folders, a set in brackets, or one byte.

An open bracket never matches.
"""
_ITEM = re.compile(rb"\[:(?P<name>[^]]*):\]|\\?(?P<first>.)(?:-(?P<last>%b))?" % _BYTE, re.DOTALL)
"""An item of a set: a class, or one byte or a range of them."""

_ALNUM = (string.ascii_letters + string.digits).encode()
_CLASSES = {
    b"alnum": _ALNUM,
    b"alpha": string.ascii_letters.encode(),
    b"blank": b" \t",
    b"cntrl": bytes((*range(32), 127)),
    b"digit": string.digits.encode(),
    b"graph": bytes(range(33, 127)),
    b"lower": string.ascii_lowercase.encode(),
    b"print": bytes(range(32, 127)),
    b"punct": string.punctuation.encode(),
    b"space": b" \t\n\r\v\f",
    b"upper": string.ascii_uppercase.encode(),
    b"xdigit": string.hexdigits.encode(),
}


def git_folder(top: Path) -> Path | None:
    """The folder with the `config` and `info` of a repository, worktree or submodule; None without one."""
    found = top / ".git"
    if not found.is_dir():
        if not (target := _first_line(found).removeprefix("gitdir:").strip()):
            return None
        found = top / target
    found /= _first_line(found / "commondir")
    return found if found.is_dir() else None


def git_settings(folder: Path | None) -> tuple[Path | None, bool]:
    """The user's ignore file for all repositories, which need not exist, and whether git ignores case.

    `folder` is the git folder of the repository, whose settings win over the user's, and those over the system's.
    """
    included: list[Path] = []
    paths = (*_user_files(), *((folder / "config",) if folder is not None else ()))
    settings = {name: value for path in paths for name, value in _settings(path, included)}
    excludes_file = _expanded(settings.get("core.excludesfile", str(_user_folder() / "ignore")))
    ignores_case = settings.get("core.ignorecase", "false").lower() in ("", "true", "yes", "on", "1")
    return (excludes_file if str(excludes_file) != "." else None), ignores_case


def _user_files() -> tuple[Path, ...]:
    """The configuration of system and user, as the environment may move it."""
    system = Path(os.environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig")
    one = os.environ.get("GIT_CONFIG_GLOBAL")
    users = (Path(one),) if one is not None else (_user_folder() / "config", _expanded("~/.gitconfig"))
    return users if os.environ.get("GIT_CONFIG_NOSYSTEM") in ("1", "true", "yes", "on") else (system, *users)


def _user_folder() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else _expanded("~/.config")) / "git"


def _expanded(value: str) -> Path:
    return Path(os.path.expanduser(value))


def _settings(path: Path, included: list[Path]) -> Iterator[tuple[str, str]]:
    """Names in lower case and values of a file and of those it includes, which are added to `included`.

    Conditions of `includeIf` are not evaluated: such a file counts, which at worst hides more.
    """
    section = ""
    for line in _text(path).replace("\r\n", "\n").replace("\\\n", "").splitlines():
        found = _LINE.match(line)
        assert found is not None  # it matches an empty line
        if found["section"]:
            section = found["section"].lower() + ("." if found["sub"] is not None else "")
        if not found["name"]:
            continue
        name, value = f"{section}.{found['name'].lower()}", _unquoted(found["value"] or "")
        if name in ("include.path", "includeif..path"):
            if len(included) == MAX_INCLUDED:
                raise NotRead(str(path), f"more than {MAX_INCLUDED} files are included")
            included.append(path.parent / _expanded(value))
            yield from _settings(included[-1], included)
        else:
            yield name, value


def _unquoted(value: str) -> str:
    """A value without quotes, escapes, comment and trailing blanks."""
    parts, bare = [], ""
    for part in _VALUE.findall(value):
        if part.startswith('"'):
            parts.append(bare + re.sub(r"\\(.)", r"\1", part.removeprefix('"').removesuffix('"')))
            bare = ""
        elif part[0] not in "#;":
            bare += part[-1:] if part[0] == "\\" else part
    return "".join((*parts, bare.rstrip())).strip()


def _first_line(path: Path) -> str:
    return _text(path).partition("\n")[0].strip()


def _text(path: Path) -> str:
    return (read(str(path), MAX_RULES_BYTES) or b"").decode("utf-8-sig", "replace")


@dataclass(frozen=True)
class IgnorePattern:
    """One line of an ignore file."""

    text: bytes
    """Without `!` and the last slash."""
    is_negated: bool
    only_folders: bool
    ignores_case: bool

    def matches(self, path: bytes, is_folder: bool) -> bool:
        """Whether the pattern matches a path relative to the ignore file's folder."""
        return (is_folder or not self.only_folders) and self._regex.fullmatch(path) is not None

    @cached_property
    def _regex(self) -> re.Pattern[bytes]:
        """A pattern without slash matches the last part of a path, others the whole path."""
        text, start = self.text, rb"(?:.*/)?+"
        if b"/" in text:
            text = text.removeprefix(b"/")
            literal = _SPECIAL.split(text, maxsplit=1)[0]
            text, start = text[len(literal) :], re.escape(literal)
        flags = re.DOTALL | (re.IGNORECASE if self.ignores_case else 0)
        return re.compile(start + _wildcards(text, self.ignores_case), flags)


@lru_cache(maxsize=32)
def parse_ignore_file(content: bytes, ignores_case: bool) -> tuple[IgnorePattern, ...]:
    """The patterns of a file's content. Raises ValueError for more, or longer ones, than people write."""
    lines = (line.split(b"\0")[0] for line in content.removeprefix(BYTE_ORDER_MARK).split(b"\n"))
    rules = [line for line in lines if line and line[:1] != b"#"]
    if len(rules) > MAX_RULES:
        raise ValueError(f"it has more than {MAX_RULES:,} rules")
    if max(map(len, rules), default=0) > MAX_RULE_BYTES:
        raise ValueError(f"a rule has more than {MAX_RULE_BYTES:,} bytes")
    return tuple(_parsed(line, ignores_case) for line in rules)


def _parsed(line: bytes, ignores_case: bool) -> IgnorePattern:
    text = _without_trailing_spaces(line.removesuffix(b"\r"))
    is_negated = text.startswith(b"!")
    text = text.removeprefix(b"!")
    return IgnorePattern(text.removesuffix(b"/"), is_negated, text.endswith(b"/"), ignores_case)


def _without_trailing_spaces(line: bytes) -> bytes:
    """A line without the spaces at its end, unless a backslash quotes the first of them."""
    bare = line.rstrip(b" ")
    backslashes = len(bare) - len(bare.rstrip(b"\\"))
    return line[: len(bare) + 1] if backslashes % 2 else bare


def _wildcards(text: bytes, ignores_case: bool) -> bytes:
    """The regular expression of a pattern in which `*` and `?` match no slash.

    Each piece between asterisks is settled, by an atomic group, where it first fits. That excludes no match, because
    the next asterisk takes what a later place would have left out; and without it a pattern of a few asterisks, which
    any repository may hold, costs hours.
    """
    blocks = [(b"", [b""])]
    """What matches folders, and then the pieces up to the next such match, divided before each asterisk."""
    for piece in _pieces(text, ignores_case):
        if piece in (_FOLDERS, _ALL):
            blocks.append((piece, [b""]))
        elif piece == _STAR:
            blocks[-1][1].append(piece)
        else:
            blocks[-1][1][-1] += piece
    return _settled([start + _settled(parts) for start, parts in blocks])


def _settled(parts: Sequence[bytes]) -> bytes:
    """The parts in order, all but the last as atomic groups."""
    return b"".join(rb"(?>%b)" % each for each in parts[:-1]) + parts[-1]


def _pieces(text: bytes, ignores_case: bool) -> Iterator[bytes]:
    """Expressions of one byte each, and the pieces that match any number."""
    for found in _PIECE.finditer(text):
        kind = found.lastgroup or "never"
        if kind == "set":
            yield _set(found["not"] != b"", found["items"], ignores_case)
        else:
            yield _WILDCARDS.get(kind) or re.escape(found[kind])


def _set(is_negated: bool, items: bytes, ignores_case: bool) -> bytes:
    """The expression of a set; one with an unknown class never matches."""
    chosen = bytearray()
    for item in _ITEM.finditer(items):
        if (name := item["name"]) is not None:
            if name not in _CLASSES:
                return _NEVER
            chosen += _CLASSES[b"alpha" if ignores_case and name == b"upper" else name]
            continue
        chosen += item["first"]
        if item["last"] is not None:
            between = bytes(range(item["first"][0], item["last"][-1] + 1))
            chosen += between + between.lower() if ignores_case else between
    lowered = bytes(range(256)).lower() if ignores_case else bytes(range(256))
    members = [byte for byte, low in enumerate(lowered) if (low in chosen) != is_negated and byte != ord("/")]
    written = b"".join(b"\\x%02x" % byte for byte in members)
    return b"(?-i:[" + written + b"])" if written else _NEVER
