"""The workspace's folders, and the paths of documents in them."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlparse

_DRIVE = re.compile(r"/[a-zA-Z]:")


class Roots:
    """Folders as the client names them; they may be symbolic links."""

    def __init__(self, folders: Iterable[Path] = ()):
        self.folders = tuple(folders)
        self._by_real = {Path(os.path.realpath(folder)): folder for folder in self.folders}
        self._reals: dict[Path, Path] = {}
        """The targets of the folders passed to `resolve`."""

    def resolve(self, folder: Path) -> None:
        """Resolve the links of a folder, so that `named` recognises paths in it; may take long."""
        if self.folders and self.named(folder) is None:
            self._reals[folder] = Path(os.path.realpath(folder))

    def named(self, path: Path) -> tuple[Path, Path] | None:
        """A path as seen below a folder, and the folder; None if it is below none.

        Paths below the target of a folder's link are named through the link; others through links need `resolve`.
        """
        for folder in self.folders:
            if path.is_relative_to(folder):
                return path, folder
        for real, folder in self._by_real.items():
            if path.is_relative_to(real):
                return folder / path.relative_to(real), folder
        real_folder = self._reals.get(path.parent, path.parent)
        return self.named(real_folder / path.name) if real_folder != path.parent else None


def path_of(uri: str) -> Path | None:
    """The file or folder that a URI names; None if it names none or an impossible one."""
    try:
        if not uri.startswith("file:"):
            return None
        parts = urlparse(uri)
        host, name = unquote(parts.netloc), unquote(parts.path)
        if host and name:
            name = f"//{host}{name}"
        elif _DRIVE.match(name):
            name = name[1].lower() + name[2:]
        return Path(name) if name and b"\0" not in os.fsencode(name) else None
    except ValueError:  # among others a lone surrogate
        return None
