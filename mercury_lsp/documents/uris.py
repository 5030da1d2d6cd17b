"""File URIs."""

from pathlib import Path

from pygls.uris import to_fs_path


def path_of(uri: str) -> Path | None:
    """The file or folder that a URI names; None if it names none."""
    try:
        name = to_fs_path(uri) if uri.startswith("file:") else None
    except ValueError:
        return None
    return Path(name) if name else None
