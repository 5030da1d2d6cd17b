"""Random trees of files with random ignore files, and git's own verdict on each path."""

import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

NAMES = (
    "a",
    "b",
    "ab",
    "A",
    "foo",
    "Foo",
    "foo.c",
    "bar.c",
    "x y",
    "tail ",
    "été",
    "#h",
    "!n",
    "[b]",
    "a*b",
    "q?",
    "back\\",
)
FOLDERS = ("d", "D", "sub", "foo", "a b", "deep", "e.d")
PARTS = (
    *("a", "b", "ab", "foo", "Foo", "FOO", "foo.c", "*.c", "*", "?", "??", "**", "f*", "*o", "*o*", "fo[o]", "[a-b]"),
    *(
        "[!a]",
        "[^a]*",
        "[]a]",
        "[a",
        "[[:alpha:]]",
        "[[:upper:]]*",
        "[[:nope:]]",
        "[z-a]",
        "[A-Z]*",
        "[a\\-b]",
        "d",
        "sub",
    ),
    *(
        "\\#h",
        "#h",
        "\\!n",
        "x y",
        "x\\ y",
        "tail ",
        "tail\\ ",
        "tail\\  ",
        "\\[b]",
        "a\\*b",
        "q\\?",
        "back\\\\",
        "back\\",
    ),
    *("été", "??t?", "a**", "**b", "f**o", "deep", "e.d", "[[:digit:][:lower:]]", "[\\]]", "[--a]", "[a-]", ""),
)
ENDS = ("", "", "", "", "", " ", "  ", "\t", "\r", "\\", "\\ ", "/ ")


@dataclass(frozen=True, slots=True)
class Tree:
    """A repository on disk, and the environment with the user's git configuration."""

    root: Path
    environment: dict[str, str]
    files: tuple[str, ...]

    def ignored_by_git(self) -> set[str]:
        """The files that git ignores."""
        asked = "\0".join(self.files).encode() + b"\0"
        found = subprocess.run(
            ["git", "check-ignore", "--no-index", "-z", "--stdin"],
            cwd=self.root,
            env=self.environment,
            input=asked,
            capture_output=True,
        )
        assert found.returncode in (0, 1), found.stderr
        return {*found.stdout.decode().split("\0")} - {""}


def planted_tree(folder: Path, seed: int) -> Tree:
    """A repository made from a seed, with ignore files in some folders and in the user's places."""
    chance = random.Random(seed)
    root, home = folder / "repo", folder / "home"
    environment = {
        **os.environ,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_DIR"):
        environment.pop(name, None)
    folders = sorted({"", *("/".join(chance.choices(FOLDERS, k=chance.randint(1, 3))) for _ in range(5))})
    for each in folders:
        (root / each).mkdir(parents=True, exist_ok=True)
    _plant_git(chance, root, home)
    for each in folders:
        if not each or chance.random() < 0.4:
            _write(root / each / ".gitignore", _ignore_file(chance))
    files = sorted({f"{each}/{name}".lstrip("/") for each in folders for name in chance.sample(NAMES, 7)})
    kept = []
    for each in files:
        if not (root / each).is_dir():
            (root / each).write_bytes(b"")
            kept.append(each)
    return Tree(root, environment, tuple(kept))


def _plant_git(chance: random.Random, root: Path, home: Path) -> None:
    """The repository and the user's settings."""
    ignores_case = chance.random() < 0.3
    _write(root / ".git/HEAD", "ref: refs/heads/main\n")
    _write(root / ".git/config", f"[core]\n\trepositoryformatversion = 0\n\tignorecase = {str(ignores_case).lower()}\n")
    for name in ("objects", "refs"):
        (root / ".git" / name).mkdir()
    if chance.random() < 0.5:
        _write(root / ".git/info/exclude", _ignore_file(chance))
    if chance.random() < 0.5:
        _write(home / ".config/git/ignore", _ignore_file(chance))
    if chance.random() < 0.3:
        where = chance.choice((".gitconfig", ".config/git/config"))
        path = chance.choice(("~/.ignored", '"~/.ignored"', f"{home}/.ignored ; mine"))
        _write(home / where, f"[user]\n\tname = me\n[Core]\n\texcludesFile = {path}\n")
        _write(home / ".ignored", _ignore_file(chance))


def _ignore_file(chance: random.Random) -> str:
    mark = "\ufeff" if chance.random() < 0.2 else ""
    line_end = "\r\n" if chance.random() < 0.2 else "\n"
    lines = [_pattern(chance) for _ in range(chance.randint(1, 6))]
    return mark + line_end.join(lines) + chance.choice(("", line_end))


def _pattern(chance: random.Random) -> str:
    parts = chance.choices(PARTS, k=chance.choice((1, 1, 1, 2, 2, 3)))
    text = "/".join(parts) if chance.random() < 0.85 else "".join(parts)
    sign = "!" if chance.random() < 0.25 else ""
    lead, end = chance.choice(("", "", "", "/", "**/", "#", " ")), chance.choice(("", "", "/", "/**", "/*"))
    return sign + lead + text + end + chance.choice(ENDS)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def differences(tree: Tree, ignored: set[str]) -> Iterator[str]:
    """What git ignores and we show, and the other way round."""
    by_git = tree.ignored_by_git()
    yield from (f"shown: {each!r}" for each in sorted(by_git - ignored))
    yield from (f"hidden: {each!r}" for each in sorted(ignored - by_git))
