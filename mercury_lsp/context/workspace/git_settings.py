"""Reads git's settings about ignored files: the user's own ignore file, and whether case matters.

Git itself is not run, because a repository can make it start programs. Everything here raises NotRead for a file that
exists and cannot be read whole.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from mercury_lsp.context.workspace.reading import MAX_RULES_BYTES, NotRead, read

MAX_INCLUDED = 64
"""Files that the configuration of one repository includes, directly or not."""

_LINE = re.compile(
    r"""\s*(?:\[\s*(?P<section>[\w.-]+)(?:\s+"(?P<sub>(?:[^"\\]|\\.)*)")?\s*\])?"""
    r"""\s*(?:(?P<name>[A-Za-z][\w-]*)\s*(?:=\s*(?P<value>.*))?)?"""
)
_VALUE = re.compile(r'"(?:[^"\\]|\\.)*"?|\\.|[^"\\#;]|[#;].*')


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
        if found is None:
            continue
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
