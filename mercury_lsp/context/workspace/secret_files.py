"""Recognises files that hold secrets, and generated ones, by the names in `secret_files.toml`."""

import fnmatch
import re
import tomllib
from importlib import resources
from pathlib import PurePath

_TEXT = resources.files(__package__).joinpath("secret_files.toml").read_text("utf-8")
_NAMES = {group: frozenset(names.split()) for group, names in tomllib.loads(_TEXT).items()}


_SECRET, _GENERATED = (
    re.compile("|".join(fnmatch.translate(name) for group in groups for name in sorted(_NAMES[group])))
    for groups in (("environment", "keys", "credentials", "data"), ("generated_files",))
)
_NEVER_ENTERED = _NAMES["folders"] | _NAMES["folders_within"]

_COPY = re.compile(r"(?:~|\.(?:bak|backup|old|orig|save|saved|copy|tmp|swp|swo|dist|\d{1,3})|#)+\Z")
"""What editors and people add to the name of a file's copy."""


def is_secret_name(name: str) -> bool:
    """Whether a file of this name, or the file that it is a copy of, holds secrets."""
    low = name.lower()
    return _SECRET.match(low) is not None or _SECRET.match(_COPY.sub("", low.removeprefix("#"))) is not None


def is_secret(path: PurePath) -> bool:
    """Whether a file is secret by its name or by one of its folders, at an absolute path."""
    return is_secret_name(path.name) or not _NAMES["folders"].isdisjoint(part.lower() for part in path.parts[:-1])


def is_generated(name: str) -> bool:
    """Whether a file of this name was most likely generated."""
    return _GENERATED.match(name) is not None


def is_never_entered(folder: str) -> bool:
    """Whether a folder of this name below a workspace folder is hidden, secret, generated or someone else's."""
    return folder.startswith(".") or folder in _NAMES["generated_folders"] or folder.lower() in _NEVER_ENTERED
