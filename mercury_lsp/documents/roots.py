"""The workspace's folders, and where documents are in them."""

import os
from collections.abc import Iterable
from pathlib import Path


class Roots:
    """Folders as the client names them, which may be links."""

    def __init__(self, folders: Iterable[Path] = ()):
        self.folders = tuple(folders)
        self._by_real = {Path(os.path.realpath(folder)): folder for folder in self.folders}

    def named(self, path: Path) -> tuple[Path, Path] | None:
        """A path as it is below a folder, and the folder; None if it is below none.

        A path that goes through what a folder's link leads to is named through the link.
        """
        for folder in self.folders:
            if path.is_relative_to(folder):
                return path, folder
        for real, folder in self._by_real.items():
            if path.is_relative_to(real):
                return folder / path.relative_to(real), folder
        return None
