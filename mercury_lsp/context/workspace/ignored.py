"""Decides which files are never opened: secret ones, ignored ones, and folders that nobody edits."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mercury_lsp.context.workspace.git import IgnorePattern, git_folder, git_settings, parse_ignore_file
from mercury_lsp.context.workspace.reading import MAX_RULES_BYTES, NotRead, read
from mercury_lsp.context.workspace.secret_files import is_generated, is_never_entered, is_secret_name

IGNORE_FILES = (".gitignore", ".mercuryignore")

RULE_FILES = (*IGNORE_FILES, "exclude")
"""Names of the files in a workspace that decide what is ignored; the last one is in git's folder."""

MAX_WORKSPACE_RULES = 50_000
"""Rules of all ignore files of a workspace folder."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _IgnoreFile:
    """The patterns of a file for everything below a folder."""

    base: str
    """The folder, with a trailing slash."""
    patterns: Sequence[IgnorePattern]

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """Whether the last pattern that matches a path ignores it; None if none matches."""
        relative = path[len(self.base) :].encode("utf-8", "surrogateescape")
        for pattern in reversed(self.patterns):
            if pattern.matches(relative, is_folder):
                return not pattern.is_negated
        return None


_Rules = tuple[tuple[_IgnoreFile, ...], ...]
"""The ignore files for the entries of a folder, outermost first: git's, and Mercury's."""


class IgnoreRules:
    """The rules of one workspace folder, read from its ignore files folder by folder, on demand.

    Folders have no slash at their end, so the root of a file system is "", or "C:". If an ignore file or git's settings
    cannot be read whole, no file below them may be opened.
    """

    def __init__(self, root: str):
        self.root = root.rstrip("/")
        self._folders: dict[str, _Rules | None] = {}
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
        return rules is None or _ignores(rules, path, is_folder=False)

    def _skips(self, folder: str) -> bool:
        """Whether a folder, or one around it below the root, is of a kind that is never entered."""
        return any(map(is_never_entered, folder[len(self.root) + 1 :].split("/")))

    def _folder(self, folder: str) -> _Rules | None:
        """The rules for the entries of a folder; None when all of them are ignored."""
        if folder not in self._folders:
            try:
                self._folders[folder] = self._read_folder(folder)
            except NotRead as reason:
                self._folders[folder] = None
                _say_once(str(reason), folder)
        return self._folders[folder]

    def _read_folder(self, folder: str) -> _Rules | None:
        if folder == self.root:
            return self._rules_of_root()
        if not folder.startswith(self.root + "/"):
            return None
        above = self._folder(folder.rpartition("/")[0])
        if above is None or _ignores(above, folder, is_folder=True):
            return None
        return self._with_files_of(above, folder)

    def _rules_of_root(self) -> _Rules:
        """The rules of the user, of the repository, and of its folders down to the root."""
        root = Path(self.root + "/")
        top = _repository_around(root)
        repository = git_folder(top)
        excludes_file, self._ignores_case = git_settings(repository)
        paths = (excludes_file, repository / "info/exclude" if repository is not None else None)
        base = top.as_posix().rstrip("/")
        users = [file for path in paths if path is not None for file in self._read(str(path), base, is_users=True)]
        rules: _Rules = (tuple(users), ())
        for each in reversed((root, *root.parents)):
            if each.is_relative_to(top):
                rules = self._with_files_of(rules, each.as_posix().rstrip("/"))
        return rules

    def _with_files_of(self, above: _Rules, folder: str) -> _Rules:
        """The rules above and those of a folder."""
        kinds = zip(above, IGNORE_FILES, strict=True)
        return tuple((*outer, *self._read(f"{folder}/{name}", folder)) for outer, name in kinds)

    def _read(self, path: str, folder: str, is_users: bool = False) -> tuple[_IgnoreFile, ...]:
        """The ignore file for a folder, if there is one. As git does, only a user's own file may be a link."""
        content = read(path, MAX_RULES_BYTES) if is_users or not os.path.islink(path) else None
        if content is None:
            return ()
        try:
            patterns = parse_ignore_file(content, self._ignores_case)
        except ValueError as reason:
            raise NotRead(path, str(reason)) from None
        self._count += len(patterns)
        if self._count > MAX_WORKSPACE_RULES:
            raise NotRead(path, f"the workspace has more than {MAX_WORKSPACE_RULES:,} rules")
        return (_IgnoreFile(folder + "/", patterns),)


def _ignores(rules: _Rules, path: str, is_folder: bool) -> bool:
    """Whether, of either kind, the innermost ignore file with a pattern for a path ignores it."""
    for files in rules:
        verdicts = (file.verdict(path, is_folder) for file in reversed(files))
        if next((verdict for verdict in verdicts if verdict is not None), False):
            return True
    return False


def is_ignored(path: Path, folder: Path | None) -> bool:
    """Whether a file is ignored, also if an ignore file cannot be read whole.

    The ignore files of its repository and of the workspace's `folder` count, also for the target of a link.
    """
    targets = (path, Path(os.path.realpath(path)))
    around = {(each, root) for each in targets for root in (_repository_around(each.parent), folder)}
    return any(
        IgnoreRules(root.as_posix()).ignores(each.as_posix())
        for each, root in around
        if root is not None and each.is_relative_to(root)
    )


def _repository_around(folder: Path) -> Path:
    """The innermost folder from this one up that has a `.git`; the folder itself if none has."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


@lru_cache(maxsize=1024)
def _say_once(reason: str, folder: str) -> None:
    logger.warning("%s; so nothing below %s is shown in other files", reason, folder or "/")
