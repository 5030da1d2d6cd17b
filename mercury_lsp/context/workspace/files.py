"""Indexes the workspace's files by folder, to resolve imports."""

import posixpath
from collections.abc import Iterator

from mercury_lsp.context.workspace.imports import Candidates

MAX_INDEXED_FILES = 200_000
"""Most files indexed, at about 300 bytes each."""

SOURCE_FOLDERS = ("", "src/", "lib/", "include/")
"""Subfolders of the importing file's ancestors where a one-part path is searched."""


class FileIndex:
    """The paths of files, with forward slashes; for one thread."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}
        """The names of the files in each folder."""
        self._folders: dict[str, list[str]] = {}
        """Folders by the last part of their paths."""
        self._count = 0

    def __contains__(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return name in self._names.get(folder, ())

    def add(self, path: str) -> None:
        """Add a file, unless it is known or the index is full."""
        if path in self or self._count >= MAX_INDEXED_FILES:
            return
        folder, _, name = path.rpartition("/")
        if folder not in self._names:
            self._names[folder] = set()
            self._folders.setdefault(posixpath.basename(folder), []).append(folder)
        self._names[folder].add(name)
        self._count += 1

    def discard(self, path: str) -> None:
        if path in self:
            folder, _, name = path.rpartition("/")
            self._names[folder].remove(name)
            self._count -= 1

    def discard_below(self, folder: str) -> None:
        for each, names in self._names.items():
            if f"{each}/".startswith(f"{folder}/"):
                self._count -= len(names)
                names.clear()

    def resolve(self, candidates: Candidates, importer: str, most: int) -> list[str]:
        """The files that an import in `importer` refers to: one, or at most `most` files of a Go package."""
        for candidate in candidates:
            if found := [path for path in self._find(candidate, importer) if path != importer]:
                return found[:most]
        return []

    def _find(self, candidate: str, importer: str) -> list[str]:
        """The files at a candidate path; of several folders, the one that shares most folders with the importer."""
        end, slash, name = candidate.rpartition("/")
        if not slash:
            return [path for path in _beside(candidate, importer) if path in self][:1]
        if candidate.startswith("/"):
            return [candidate] if candidate in self else []
        folders = [each for each in self._folders.get(posixpath.basename(end), ()) if each.endswith("/" + end)]
        found = {each: paths for each in folders if (paths := self._matching(each, name))}
        return found[max(found, key=lambda each: _shared(each, importer))] if found else []

    def _matching(self, folder: str, name: str) -> list[str]:
        """The paths in a folder with this name; `*.go` stands for all files of a Go package except tests."""
        names = self._names[folder]
        if name != "*.go":
            return [f"{folder}/{name}"] if name in names else []
        return sorted(f"{folder}/{each}" for each in names if each.endswith(".go") and not each.endswith("_test.go"))


def _beside(name: str, importer: str) -> Iterator[str]:
    """Paths where a file of this name may be: beside the importer, or in folders above it."""
    folder = importer
    while "/" in folder:
        folder = folder.rpartition("/")[0]
        for between in SOURCE_FOLDERS:
            yield f"{folder}/{between}{name}"


def _shared(path: str, other: str) -> tuple[int, int]:
    """The number of folders that two paths share; among equals the shorter path is nearer."""
    return len(posixpath.commonpath((path, other)).split("/")), -len(path)
