"""The files of a workspace by path; the end of a path is enough to find one."""

import posixpath
from collections.abc import Iterator

from mercury_lsp.context.workspace.imports import ImportedFile

MAX_FILES = 200_000
"""More are left out: about 300 bytes each."""

SOURCE_FOLDERS = ("", "src/", "lib/", "include/")
"""Below a folder above the importing file, where a path of one part is looked for."""

OnePathOrMore = str | tuple[str, ...]


class FileIndex:
    """Paths with forward slashes, by their last two parts; for one thread."""

    def __init__(self) -> None:
        self._by_end: dict[str, OnePathOrMore] = {}
        self._folders: dict[str, int] = {}
        """Folders that hold files, and how many."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, path: str) -> bool:
        return path in _as_tuple(self._by_end.get(_end(path)))

    @property
    def folders(self) -> list[str]:
        """Folders that hold files directly."""
        return list(self._folders)

    def add(self, path: str) -> None:
        """Take in a file; nothing happens to one that is there, or when there are too many."""
        if path in self or self._count >= MAX_FILES:
            return
        held = self._by_end.get(_end(path))
        self._by_end[_end(path)] = path if held is None else (*_as_tuple(held), path)
        folder = posixpath.dirname(path)
        self._folders[folder] = self._folders.get(folder, 0) + 1
        self._count += 1

    def discard(self, path: str) -> None:
        """A file is gone."""
        if path not in self:
            return
        left = tuple(each for each in _as_tuple(self._by_end[_end(path)]) if each != path)
        if left:
            self._by_end[_end(path)] = left[0] if len(left) == 1 else left
        else:
            del self._by_end[_end(path)]
        folder = posixpath.dirname(path)
        self._folders[folder] -= 1
        if not self._folders[folder]:
            del self._folders[folder]
        self._count -= 1

    def discard_below(self, folder: str) -> None:
        """A folder is gone."""
        for path in [path for path in self._paths() if path.startswith(folder + "/")]:
            self.discard(path)

    def resolve(self, wanted: ImportedFile, importer: str, most: int) -> list[str]:
        """The files that an import of the file `importer` means: one, or `most` files of a package of Go."""
        for place in wanted.places:
            if place.endswith("/*.go"):
                if found := self._package(place.removesuffix("/*.go"), importer):
                    return found[:most]
            elif (path := self._find(place, importer)) is not None and path != importer:
                return [path]
        return []

    def _find(self, place: str, importer: str) -> str | None:
        """The file at a place; of several with the same end the one that shares most folders with the importer."""
        if place.startswith("/"):
            return place if place in self else None
        if "/" not in place:
            return next((path for path in _beside(place, importer) if path in self), None)
        fitting = [path for path in _as_tuple(self._by_end.get(_end("/" + place))) if path.endswith("/" + place)]
        return max(fitting, key=lambda path: _shared(path, importer), default=None)

    def _package(self, end: str, importer: str) -> list[str]:
        """Files of the package of Go whose folder ends so, without tests."""
        fitting = [folder for folder in self._folders if folder.endswith("/" + end)]
        if not fitting:
            return []
        folder = max(fitting, key=lambda path: _shared(path, importer))
        return sorted(
            path
            for path in self._paths()
            if posixpath.dirname(path) == folder and path.endswith(".go") and not path.endswith("_test.go")
        )

    def _paths(self) -> Iterator[str]:
        for held in self._by_end.values():
            yield from _as_tuple(held)


def _beside(name: str, importer: str) -> Iterator[str]:
    """Where a file of this name may lie: beside the importer, or in folders above it."""
    folder = posixpath.dirname(importer)
    while folder not in ("", "/"):
        for between in SOURCE_FOLDERS:
            yield f"{folder}/{between}{name}"
        folder = posixpath.dirname(folder)


def _end(path: str) -> str:
    return "/".join(path.rsplit("/", 2)[-2:])


def _as_tuple(held: OnePathOrMore | None) -> tuple[str, ...]:
    return () if held is None else (held,) if isinstance(held, str) else held


def _shared(path: str, other: str) -> tuple[int, int]:
    """How many folders two paths share; among equals the shorter path is nearer."""
    return len(posixpath.commonpath((path, other)).split("/")), -len(path)
