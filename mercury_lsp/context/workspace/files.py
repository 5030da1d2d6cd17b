"""Indexes the workspace's files by the end of their paths, to resolve imports."""

import posixpath
from collections.abc import Iterator
from itertools import chain

from mercury_lsp.context.workspace.imports import ImportedFile

MAX_INDEXED_FILES = 200_000
"""Most files indexed, at about 300 bytes each."""

SOURCE_FOLDERS = ("", "src/", "lib/", "include/")
"""Subfolders of the importing file's ancestors where a one-part path is searched."""


class FileIndex:
    """Paths with forward slashes, indexed by their last two parts; for one thread."""

    def __init__(self) -> None:
        self._by_end: dict[str, tuple[str, ...]] = {}
        self._folders: dict[str, int] = {}
        """Folders with files, and their number of files."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, path: str) -> bool:
        return path in self._by_end.get(_end(path), ())

    def add(self, path: str) -> None:
        """Add a file, unless it is known or the index is full."""
        if path in self or self._count >= MAX_INDEXED_FILES:
            return
        self._by_end[_end(path)] = (*self._by_end.get(_end(path), ()), path)
        folder = path.rpartition("/")[0]
        self._folders[folder] = self._folders.get(folder, 0) + 1
        self._count += 1

    def discard(self, path: str) -> None:
        if path not in self:
            return
        self._by_end[_end(path)] = tuple(each for each in self._by_end[_end(path)] if each != path)
        if not self._by_end[_end(path)]:
            del self._by_end[_end(path)]
        folder = path.rpartition("/")[0]
        self._folders[folder] -= 1
        if not self._folders[folder]:
            del self._folders[folder]
        self._count -= 1

    def discard_below(self, folder: str) -> None:
        for path in [path for path in self._paths() if path.startswith(folder + "/")]:
            self.discard(path)

    def resolve(self, wanted: ImportedFile, importer: str, most: int) -> list[str]:
        """The files that an import in `importer` refers to: one, or at most `most` files of a Go package."""
        for candidate in wanted.candidates:
            if candidate.endswith("/*.go"):
                if found := self._package(candidate.removesuffix("/*.go"), importer):
                    return found[:most]
            elif (path := self._find(candidate, importer)) is not None and path != importer:
                return [path]
        return []

    def _find(self, candidate: str, importer: str) -> str | None:
        """The file at a candidate path; among several, the one that shares most folders with the importer."""
        if candidate.startswith("/"):
            return candidate if candidate in self else None
        if "/" not in candidate:
            return next((path for path in _beside(candidate, importer) if path in self), None)
        fitting = [path for path in self._by_end.get(_end("/" + candidate), ()) if path.endswith("/" + candidate)]
        return max(fitting, key=lambda path: _shared(path, importer), default=None)

    def _package(self, end: str, importer: str) -> list[str]:
        """The files, except tests, of the Go package whose folder ends with `end`."""
        fitting = [folder for folder in self._folders if folder.endswith("/" + end)]
        if not fitting:
            return []
        folder = max(fitting, key=lambda path: _shared(path, importer))
        return sorted(
            path
            for path in self._paths()
            if path.rpartition("/")[0] == folder and path.endswith(".go") and not path.endswith("_test.go")
        )

    def _paths(self) -> Iterator[str]:
        return chain.from_iterable(self._by_end.values())


def _beside(name: str, importer: str) -> Iterator[str]:
    """Paths where a file of this name may be: beside the importer, or in folders above it."""
    folder = importer
    while "/" in folder:
        folder = folder.rpartition("/")[0]
        for between in SOURCE_FOLDERS:
            yield f"{folder}/{between}{name}"


def _end(path: str) -> str:
    return "/".join(path.rsplit("/", 2)[-2:])


def _shared(path: str, other: str) -> tuple[int, int]:
    """The number of folders that two paths share; among equals the shorter path is nearer."""
    return len(posixpath.commonpath((path, other)).split("/")), -len(path)
