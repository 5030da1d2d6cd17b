"""Read the Python files of an environment's installed distributions, a corpus that needs no network."""

import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from mercury_lab.training.data.sources import SourceError, is_permissive, normalised_name

OUR_DISTRIBUTION = "mercury-lsp"

_SPDX_BY_CLASSIFIER = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "Boost Software License 1.0 (BSL-1.0)": "BSL-1.0",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
    "zlib/libpng License": "Zlib",
}

_SPDX_BY_NAME = {
    "apache": "Apache-2.0",
    "apache 2": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "mit license": "MIT",
    "new bsd": "BSD-3-Clause",
}


def _field(distribution: metadata.Distribution, name: str) -> str:
    return str((distribution.metadata.get_all(name) or [""])[0]).strip()


def licence_of(distribution: metadata.Distribution) -> str | None:
    """The licence as a permissive SPDX expression; None if it is not permissive, unclear or missing.

    The SPDX expression counts first, then the classifiers, which must all be known, then the old free-text field.
    """
    expression = _field(distribution, "License-Expression")
    if expression:
        return expression if is_permissive(expression) else None
    licences = [
        c.rpartition("::")[2].strip()
        for c in distribution.metadata.get_all("Classifier") or ()
        if c.startswith("License ::")
    ]
    licences = [name for name in licences if name != "OSI Approved"]
    if licences:
        return (
            " AND ".join(sorted(_SPDX_BY_CLASSIFIER[name] for name in licences))
            if set(licences) <= _SPDX_BY_CLASSIFIER.keys()
            else None
        )
    text = _field(distribution, "License")
    text = _SPDX_BY_NAME.get(text.lower(), text)
    return text if is_permissive(text) else None


def distributions(environment: Path | None = None) -> list[metadata.Distribution]:
    """The distributions of an environment by name: of this interpreter, a site-packages folder or a venv."""
    folders = None if environment is None else [str(folder) for folder in _site_packages(environment)]
    found = metadata.distributions() if folders is None else metadata.distributions(path=folders)
    by_name: dict[str, metadata.Distribution] = {}
    for distribution in found:  # as for imports, the first distribution of a name wins
        if name := _field(distribution, "Name"):
            by_name.setdefault(normalised_name(name), distribution)
    return [by_name[name] for name in sorted(by_name) if name != OUR_DISTRIBUTION]


def _site_packages(environment: Path) -> list[Path]:
    inside = sorted(environment.glob("lib*/python*/site-packages")) + sorted(environment.glob("Lib/site-packages"))
    folders = inside or [environment]
    if not any(True for folder in folders for _ in folder.glob("*.dist-info")):
        raise SourceError(f"no distributions in {environment}; name a virtual environment or a site-packages folder")
    return folders


def distribution_files(distribution: metadata.Distribution) -> Iterator[tuple[str, bytes]]:
    """Path relative to the import path, and content, of every Python file that the distribution installed."""
    for path in distribution.files or ():
        if path.suffix == ".py" and ".." not in path.parts and not re.search(r"\.(dist-info|data)$", path.parts[0]):
            place = Path(str(path.locate()))
            if place.is_file():
                yield path.as_posix(), place.read_bytes()
