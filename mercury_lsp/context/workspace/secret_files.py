"""Recognises files that hold secrets by their names and folders, listed in `secret_files.toml`."""

import fnmatch
import re
import tomllib
from importlib import resources
from pathlib import PurePath

_NAMES = {
    group: frozenset(names.split())
    for group, names in tomllib.loads(
        resources.files(__package__).joinpath("secret_files.toml").read_text("utf-8")
    ).items()
}

SECRET_FILE_PATTERNS = _NAMES["environment"] | _NAMES["keys"] | _NAMES["credentials"] | _NAMES["data"]
"""Patterns, in lower case, of names of files that hold secrets."""

PRIVATE_FOLDERS = _NAMES["folders"]
"""Names, in lower case, of folders that hold secrets, wherever they are."""

SECRET_FOLDERS = PRIVATE_FOLDERS | _NAMES["folders_within"]
"""The same below a workspace folder: the folder itself, and those around it, may have such a name."""

_SECRET = re.compile("|".join(map(fnmatch.translate, sorted(SECRET_FILE_PATTERNS))))

_COPY = re.compile(r"(?:~|\.(?:bak|backup|old|orig|save|saved|copy|tmp|swp|swo|dist|\d{1,3})|#)+\Z")
"""What editors and people add to the name of a file's copy."""


def is_secret_name(name: str) -> bool:
    """Whether a file of this name, or the file that it is a copy of, holds secrets."""
    low = name.lower()
    return _SECRET.match(low) is not None or _SECRET.match(_COPY.sub("", low.removeprefix("#"))) is not None


def is_secret(path: PurePath) -> bool:
    """Whether a file is secret by its name or by one of its folders, at an absolute path."""
    return is_secret_name(path.name) or not PRIVATE_FOLDERS.isdisjoint(part.lower() for part in path.parts[:-1])
