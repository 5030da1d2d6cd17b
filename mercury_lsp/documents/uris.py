"""File URIs."""

import os
from pathlib import Path

from pygls.uris import to_fs_path


def path_of(uri: str) -> Path | None:
    """The file or folder that a URI names; None if it names none or an impossible one."""
    try:
        name = to_fs_path(uri) if uri.startswith("file:") else None
        return Path(name) if name and b"\0" not in os.fsencode(name) else None
    except ValueError:  # among others a lone surrogate
        return None
