"""Get the packages listed in sources.toml: their archives and the files inside.

Each registry's own client downloads the archives, which are kept; nothing in them is installed or run.
"""

import lzma
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, get_args

from mercury_engine.errors import MercuryError

from mercury_lab.training.data import debian

SOURCES_FILE = Path(__file__).with_name("sources.toml")

Registry = Literal["pypi", "npm", "debian"]
REGISTRIES: tuple[Registry, ...] = get_args(Registry)

PERMISSIVE_LICENCES = frozenset(
    """0BSD Apache-2.0 BSD-1-Clause BSD-2-Clause BSD-3-Clause BSL-1.0 CC0-1.0 ISC MIT MIT-0 MPL-2.0 PSF-2.0
    Unlicense Zlib""".split()  # noqa: SIM905
)

FETCH_SECONDS = 300


class SourceError(MercuryError):
    """A list names something that must not be trained on, or a source cannot be obtained."""


class HeldOut(SourceError):
    """A list to train on names what is kept for evaluation."""


@dataclass(frozen=True, slots=True)
class PackageSource:
    """One version of one package."""

    registry: Registry
    name: str
    version: str
    licence: str


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One source file; `path` begins with the package's name or import path."""

    path: str
    package: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Sources:
    """What sources.toml holds out; `held_names`: see `held_out_in`; `sample`: SHA-256 by file."""

    held_out: tuple[PackageSource, ...]
    held_names: frozenset[str]
    sample: Mapping[str, str]


def load() -> Sources:
    """What the list holds out; the rest of it says what the bundled model was trained on."""
    lists = tomllib.loads(SOURCES_FILE.read_text("utf-8"))
    table = lists["held_out"]
    held_out = tuple(PackageSource(registry, **entry) for registry in REGISTRIES for entry in table.get(registry, ()))
    names = {normalised_name(name) for name in (*table["names"], *(source.name for source in held_out))}
    return Sources(held_out, frozenset(names), lists["sample"])


def is_permissive(expression: str) -> bool:
    """Whether PERMISSIVE_LICENCES alone can satisfy an SPDX expression of AND and OR without parentheses."""
    return any(
        all(term.strip() in PERMISSIVE_LICENCES for term in choice.split(" AND "))
        for choice in expression.split(" OR ")
    )


def normalised_name(name: str) -> str:
    """The name in one spelling, as in PEP 503, without the underscores that mark private copies."""
    return re.sub(r"[-_.]+", "-", name.lower()).strip("-")


def held_out_in(path: str, held_names: Set[str]) -> str | None:
    """The held-out name that is a component of the path (the last also without its suffix), or None."""
    parts = PurePosixPath(path).parts
    for part in (*parts, PurePosixPath(path).stem):
        if normalised_name(part) in held_names:
            return normalised_name(part)
    return None


def fetch(source: PackageSource, archives: Path) -> Path:
    """The source's archive below `archives`, downloaded if missing; raises SourceError if that fails."""
    folder = archives / source.registry / f"{source.name.replace('/', '+')}-{source.version.replace(':', '+')}"
    if not folder.is_dir():
        partial = folder.with_name(folder.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _download(source, partial)
        partial.rename(folder)
    return next(folder.iterdir())


def _download(source: PackageSource, folder: Path) -> None:
    try:
        command = _fetch_command(source)
        subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=FETCH_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        raise SourceError(f"{source.name} {source.version} could not be fetched from {source.registry}") from error
    if not any(folder.iterdir()):
        raise SourceError(f"{source.registry} has no archive of {source.name} {source.version}")


def _fetch_command(source: PackageSource) -> tuple[str, ...]:
    """The command that downloads the source's archive into the working folder."""
    if source.registry == "pypi":
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps")
        return *pip, "--only-binary", ":all:", "--dest", ".", f"{source.name}=={source.version}"
    if source.registry == "npm":
        return "npm", "pack", "--silent", f"{source.name}@{source.version}"
    return debian.fetch_binary(source.name, source.version)


def archive_files(source: PackageSource, archive: Path) -> Iterator[tuple[str, bytes]]:
    """Path (from the package's name or import path) and content of every regular file in an archive."""
    try:
        if source.registry == "pypi":
            yield from _wheel_files(archive)
        elif source.registry == "debian":
            yield from debian.installed_files(source.name, archive)
        else:
            yield from _packed_files(source, archive)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError) as error:
        raise SourceError(f"{archive} is not a readable package ({error}); delete its folder and run again") from error


def _wheel_files(archive: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(archive) as wheel:
        for info in wheel.infolist():
            root = info.filename.partition("/")[0]
            if not info.is_dir() and not root.endswith((".dist-info", ".data")):
                yield info.filename, wheel.read(info)


def _packed_files(source: PackageSource, archive: Path) -> Iterator[tuple[str, bytes]]:
    """Files of an npm archive; the package's name replaces the single top folder."""
    with tarfile.open(archive) as tar:
        for path, content in debian.tar_files(tar):
            yield f"{source.name.lstrip('@')}/{path.partition('/')[2]}", content
