"""Decides which files are never opened: secret ones, ignored ones, and folders that nobody edits."""

import logging
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mercury_lsp.context.workspace.git_patterns import IgnorePatterns, parse_ignore_file
from mercury_lsp.context.workspace.git_settings import git_folder, git_settings
from mercury_lsp.context.workspace.reading import MAX_RULES_BYTES, NotRead, read
from mercury_lsp.context.workspace.secret_files import is_generated, is_never_entered, is_secret_name

IGNORE_FILES = (".gitignore", ".mercuryignore")

MAX_WORKSPACE_RULES = 50_000
"""Rules of all ignore files of a workspace folder."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _FolderRules:
    """One folder's ignore rules for everything below it; `above` are its parent's rules."""

    above: "_FolderRules | None"
    base: str
    """The folder, with a trailing slash."""
    patterns: tuple[IgnorePatterns | None, IgnorePatterns | None]
    """From git's and from Mercury's ignore files."""

    def ignores(self, path: str, is_folder: bool) -> bool:
        """Whether either kind of ignore file matches a path."""
        return self._matches(path, is_folder, 0) or self._matches(path, is_folder, 1)

    def _matches(self, path: str, is_folder: bool, kind: int) -> bool:
        """The verdict of the nearest ignore file with a pattern for the path."""
        rules: _FolderRules | None = self
        while rules is not None:
            patterns = rules.patterns[kind]
            relative = path[len(rules.base) :].encode("utf-8", "surrogateescape")
            verdict = patterns.verdict(relative, is_folder) if patterns is not None else None
            if verdict is not None:
                return verdict
            rules = rules.above
        return False


class IgnoreRules:
    """The rules of one workspace folder, read from its ignore files folder by folder, on demand.

    Folders have no slash at their end, so the root of a file system is "", or "C:". If an ignore file or git's settings
    cannot be read whole, no file below them may be opened.
    """

    def __init__(self, root: str):
        self.root = root.rstrip("/")
        self._folders: dict[str, _FolderRules | None] = {}
        self._ignores_case = False
        self._count = 0
        """Rules read so far."""

    def allows(self, path: str) -> bool:
        """Whether a file below the root may be opened, judged by its path; the file need not exist."""
        folder, _, name = path.rpartition("/")
        return not (is_secret_name(name) or is_generated(name) or self._skips(folder) or self.ignores(path))

    def allows_folder(self, folder: str) -> bool:
        """Whether files in a folder may be opened."""
        return not self._skips(folder) and self._folder(folder) is not None

    def ignores(self, path: str) -> bool:
        """Whether an ignore file names a file below the root, or a folder around it; also if one cannot be read."""
        rules = self._folder(path.rpartition("/")[0])
        return rules is None or rules.ignores(path, is_folder=False)

    def _skips(self, folder: str) -> bool:
        """Whether a folder, or one around it below the root, is of a kind that is never entered."""
        return any(map(is_never_entered, folder[len(self.root) + 1 :].split("/")))

    def _folder(self, folder: str) -> _FolderRules | None:
        """The rules for the entries of a folder; None when all of them are ignored."""
        if folder not in self._folders:
            try:
                self._folders[folder] = self._read_folder(folder)
            except NotRead as reason:
                self._folders[folder] = None
                _say_once(str(reason), folder)
        return self._folders[folder]

    def _read_folder(self, folder: str) -> _FolderRules | None:
        if folder == self.root:
            return self._rules_down_to_root()
        above = folder.rpartition("/")[0]
        if not folder.startswith(self.root + "/"):
            return None
        rules = self._folder(above)
        if rules is None or rules.ignores(folder, is_folder=True):
            return None
        return self._read(rules, folder)

    def _rules_down_to_root(self) -> _FolderRules:
        """The rules of the user, of the repository, and of its folders down to the root."""
        root = Path(self.root + "/")
        top = next((each for each in (root, *root.parents) if (each / ".git").exists()), root)
        rules: _FolderRules | None = _FolderRules(None, _as_folder(top) + "/", (self._user_patterns(top), None))
        for each in reversed(root.parents):
            if each.is_relative_to(top):
                rules = self._read(rules, _as_folder(each))
        return self._read(rules, self.root)

    def _user_patterns(self, top: Path) -> IgnorePatterns:
        """The patterns of the user for all repositories and for this one."""
        repository = git_folder(top)
        settings = git_settings(repository)
        self._ignores_case = settings.ignores_case
        paths = (settings.excludes_file, repository / "info/exclude" if repository is not None else None)
        found = [self._patterns(str(path), is_users=True) for path in paths if path is not None]
        return sum((each for each in found if each is not None), IgnorePatterns(()))

    def _read(self, above: _FolderRules | None, folder: str) -> _FolderRules:
        """The rules above combined with this folder's."""
        git, mercury = (self._patterns(f"{folder}/{name}") for name in IGNORE_FILES)
        if git is None and mercury is None and above is not None:
            return above
        return _FolderRules(above, folder + "/", (git, mercury))

    def _patterns(self, path: str, is_users: bool = False) -> IgnorePatterns | None:
        """The patterns of an ignore file; None without one. As git does, only a user's own file may be a link."""
        if not is_users and os.path.islink(path):
            return None
        if (content := read(path, MAX_RULES_BYTES)) is None:
            return None
        try:
            found = parse_ignore_file(content, self._ignores_case)
        except ValueError as reason:
            raise NotRead(path, str(reason)) from None
        self._count += len(found.patterns)
        if self._count > MAX_WORKSPACE_RULES:
            raise NotRead(path, f"the workspace has more than {MAX_WORKSPACE_RULES:,} rules")
        return found


def is_ignored(path: Path, folder: Path | None) -> bool:
    """Whether a file is ignored, also if an ignore file cannot be read whole.

    The ignore files of its repository and of the workspace's `folder` count, also for the target of a link.
    """
    return any(
        IgnoreRules(root.as_posix()).ignores(each.as_posix())
        for each in {path, Path(os.path.realpath(path))}
        for root in _roots_of(each, folder)
    )


def _roots_of(path: Path, folder: Path | None) -> set[Path]:
    repository = next((each for each in path.parents if (each / ".git").exists()), path.parent)
    return {repository} | ({folder} if folder is not None and path.is_relative_to(folder) else set())


@lru_cache(maxsize=1024)
def _say_once(reason: str, folder: str) -> None:
    logger.warning("%s; so nothing below %s is shown in other files", reason, folder or "/")


def _as_folder(path: Path) -> str:
    return path.as_posix().rstrip("/")


def inside(root: str, path: str) -> bool:
    """Whether a path below the root is really there: no link on the way leads elsewhere."""
    root += "/"
    return os.path.realpath(path) == os.path.join(os.path.realpath(root), os.path.relpath(path, root))
