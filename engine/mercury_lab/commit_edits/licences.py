"""The licence of a repository, read from its LICENSE file."""

import re
from pathlib import Path

from mercury_lab.training.commits.history import git

_FILE = re.compile(r"(?:licen[cs]e|copying)(?:\.(?:md|txt))?", re.I)

_MARKS = {
    "Apache-2.0": re.compile(r"Apache License,?\s+Version 2\.0"),
    "MIT": re.compile(r"Permission is hereby granted, free of charge"),
    "BSD-3-Clause": re.compile(r"Redistribution and use in source and binary forms.*endorse or promote", re.S),
    "BSD-2-Clause": re.compile(r"Redistribution and use in source and binary forms(?!.*endorse or promote)", re.S),
    "ISC": re.compile(r"Permission to use, copy, modify,? and(?:/or)? distribute this software.*provided that", re.S),
}
"""A phrase of each licence that is taken."""

_OTHERS = re.compile(r"GNU (?:Lesser |Affero )?General Public License|Mozilla Public License|Creative Commons", re.I)


def licence_of(folder: Path, commit: str) -> str | None:
    """The SPDX identifiers of a clone's licence; None if it has none or another one as well. Raises SourceError."""
    names = git(folder, "ls-tree", "--name-only", commit).decode("utf-8", "replace").splitlines()
    texts = [
        git(folder, "show", f"{commit}:{name}").decode("utf-8", "replace") for name in names if _FILE.fullmatch(name)
    ]
    return licence_in("\n".join(texts))


def licence_in(text: str) -> str | None:
    """The SPDX identifiers of the licences in a text; None if there is none, or one that is not permissive."""
    found = [name for name, mark in _MARKS.items() if mark.search(text)]
    return " AND ".join(found) if found and not _OTHERS.search(text) else None
