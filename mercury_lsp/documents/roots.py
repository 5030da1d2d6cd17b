"""The workspace's folders, and where documents are in them."""

import os
from collections.abc import Iterable
from pathlib import Path


class Roots:
    """Folders as the client names them, which may be links."""

    def __init__(self, folders: Iterable[Path] = ()):
        self.folders = tuple(folders)
        self._by_real = {Path(os.path.realpath(folder)): folder for folder in self.folders}
        self._reals: dict[Path, Path] = {}
        """Where the folders are that `resolve` was told."""

    def resolve(self, folder: Path) -> None:
        """Find out where a folder really is, so that paths in it that go through a link are named; may take long."""
        if self.folders and self.named(folder) is None:
            self._reals[folder] = Path(os.path.realpath(folder))

    def named(self, path: Path) -> tuple[Path, Path] | None:
        """A path as it is below a folder, and the folder; None if it is below none.

        A path that goes through what a folder's link leads to is named through the link, one through another link
        once its folder is resolved.
        """
        for folder in self.folders:
            if path.is_relative_to(folder):
                return path, folder
        for real, folder in self._by_real.items():
            if path.is_relative_to(real):
                return folder / path.relative_to(real), folder
        real_folder = self._reals.get(path.parent, path.parent)
        return self.named(real_folder / path.name) if real_folder != path.parent else None
