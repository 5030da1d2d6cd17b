"""File URIs."""

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlparse

_DRIVE = re.compile(r"/[a-zA-Z]:")


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
