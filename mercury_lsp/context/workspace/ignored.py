"""Decides which files are never opened: secret ones, ignored ones, and folders that nobody edits."""

import fnmatch
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath

from pathspec import GitIgnoreSpec


def _words(names: str) -> frozenset[str]:
    return frozenset(names.split())


SECRET_FILE_PATTERNS = _words(
    ".env .env.* *.env .envrc *.pem *.key *.p12 *.pfx *.p8 *.jks *.keystore *.kdbx *.ppk *.gpg *.ovpn id_rsa*"
    " id_dsa* id_ecdsa* id_ed25519* credentials credentials.* *credentials.json client_secret*.json"
    " service-account*.json secret secret.* secrets secrets.* .netrc _netrc .npmrc .pypirc .htpasswd .pgpass"
    " .git-credentials .dockercfg .boto .s3cfg *.tfstate *.tfvars terraform.tfstate*"
)
"""Patterns, in lower case, of names of files that contain secrets."""

SECRET_FOLDERS = _words(".aws .ssh .gnupg .kube .docker .gcloud .azure .password-store")

SKIPPED_FOLDERS = _words(
    "node_modules bower_components jspm_packages site-packages __pycache__ venv virtualenv dist build out target"
    " vendor third_party coverage htmlcov"
)
"""Folders of generated or third-party files; folders whose name begins with a dot count too."""

SKIPPED_FILE_PATTERNS = _words("*.min.js *.min.mjs *.bundle.js *-min.js *_pb2.py *_pb2_grpc.py *.pb.go *.generated.*")

IGNORE_FILES = (".gitignore", ".mercuryignore")

_SECRET = re.compile("|".join(map(fnmatch.translate, SECRET_FILE_PATTERNS)))
_SKIPPED = re.compile("|".join(map(fnmatch.translate, SKIPPED_FILE_PATTERNS)))


def is_secret(path: PurePath) -> bool:
    """Whether a file is secret by its name or by one of its folders."""
    return bool(_SECRET.match(path.name.lower())) or not SECRET_FOLDERS.isdisjoint(path.parts[:-1])


@dataclass(frozen=True, slots=True)
class _FolderRules:
    """One folder's ignore rules for everything below it; `above` are its parent's rules."""

    above: "_FolderRules | None"
    base: str
    """The folder, with a trailing slash."""
    specs: tuple[GitIgnoreSpec | None, GitIgnoreSpec | None]
    """From git's and from Mercury's ignore files."""

    def ignores(self, path: str) -> bool:
        """Whether either kind of ignore file matches a path; folders have a trailing slash."""
        return self._matches(path, 0) or self._matches(path, 1)

    def _matches(self, path: str, kind: int) -> bool:
        """The verdict of the nearest ignore file with a pattern for the path."""
        rules: _FolderRules | None = self
        while rules is not None:
            spec = rules.specs[kind]
            verdict = spec.check_file(path[len(rules.base) :]).include if spec is not None else None
            if verdict is not None:
                return verdict
            rules = rules.above
        return False


class IgnoreRules:
    """The rules of one workspace folder, read from its ignore files folder by folder, on demand."""

    def __init__(self, root: str):
        self.root = root
        self._folders: dict[str, _FolderRules | None] = {}

    def allows(self, path: str) -> bool:
        """Whether a file below the root may be opened, judged by its path; the file need not exist."""
        folder, _, name = path.rpartition("/")
        if _SECRET.match(name.lower()) or _SKIPPED.match(name):
            return False
        rules = self._folder(folder)
        return rules is not None and not rules.ignores(path)

    def allows_folder(self, folder: str) -> bool:
        """Whether files in a folder may be opened."""
        return self._folder(folder) is not None

    def _folder(self, folder: str) -> _FolderRules | None:
        """The rules for the entries of a folder; None when none of them may be opened."""
        if folder not in self._folders:
            self._folders[folder] = self._read_folder(folder)
        return self._folders[folder]

    def _read_folder(self, folder: str) -> _FolderRules | None:
        if folder == self.root:
            return _read(_rules_around(folder), folder)
        above, _, name = folder.rpartition("/")
        if not folder.startswith(self.root + "/") or name in SKIPPED_FOLDERS or name.startswith("."):
            return None
        rules = self._folder(above)
        if rules is None or rules.ignores(folder + "/"):
            return None
        return _read(rules, folder)


def _rules_around(root: str) -> _FolderRules | None:
    """The rules of the folders above the root, up to the top of its git repository."""
    folder = Path(root)
    top = next((each for each in (folder, *folder.parents) if _is_top(each)), folder)
    rules: _FolderRules | None = None
    for each in reversed(folder.parents):
        if each.is_relative_to(top):
            rules = _read(rules, each.as_posix())
    return rules


def _is_top(folder: Path) -> bool:
    return (folder / ".git").exists()


def _read(above: _FolderRules | None, folder: str) -> _FolderRules:
    """The rules above combined with this folder's."""
    git, mercury = (_spec(f"{folder}/{name}") for name in IGNORE_FILES)
    excluded = _spec(f"{folder}/.git/info/exclude")
    if excluded is not None:  # .gitignore comes later, so it has the last word
        git = excluded + git if git is not None else excluded
    if git is None and mercury is None and above is not None:
        return above
    return _FolderRules(above, folder.rstrip("/") + "/", (git, mercury))


def _spec(path: str) -> GitIgnoreSpec | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return _compiled(file.read())
    except OSError:
        return None


@cache
def _compiled(text: str) -> GitIgnoreSpec:
    lines = []
    for line in text.splitlines():
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:  # git skips invalid patterns, too
            continue
        lines.append(line)
    return GitIgnoreSpec.from_lines(lines)


def inside(root: str, path: str) -> bool:
    """Whether a path below the root is really there: no link on the way leads elsewhere."""
    return os.path.realpath(path) == os.path.join(os.path.realpath(root), os.path.relpath(path, root))
