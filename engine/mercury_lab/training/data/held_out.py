"""Get the repositories kept for evaluation: `python -m mercury_lab.training held-out --out DIR [--sample]`.

Writes the source files of the packages in sources.toml to DIR, a folder for each package, and keeps the archives beside
it, so that an interrupted build can resume. Evaluation takes DIR as --corpus; training leaves out what is in it. With
--sample only the twenty files that evaluation completes by default are written, all of them or none.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.progress import track

from mercury_lab.training.data import sources
from mercury_lab.training.data.selection import select
from mercury_lab.training.data.sources import PackageSource, SourceError

Package = tuple[PackageSource, list[tuple[str, bytes]]]
"""A package, and the paths and contents of its files."""


def packages(folder: Path, missing: list[str]) -> Iterator[Package]:
    """The held-out packages; appends to `missing` why some cannot be had."""
    for source in track(sources.load().held_out, "Reading packages"):
        try:
            archive = sources.fetch(source, folder.with_name(folder.name + "-archives"))
            yield source, list(sources.archive_files(source, archive))
        except SourceError as error:
            missing.append(str(error))


def build(folder: Path) -> list[str]:
    """Write the selected files of all held-out packages; returns why packages are missing."""
    missing = list[str]()
    for source, files in packages(folder, missing):
        for file in select(source.name, files):
            name = file.path.removeprefix(f"{file.package}/")
            _write(folder / file.package.rpartition("/")[2] / name, file.text.encode("utf-8"))
    return missing


def build_sample(folder: Path) -> list[str]:
    """Write the sample's files, told by their SHA-256, or none of them; returns why some are missing."""
    missing, found = list[str](), dict[str, bytes]()
    names = {digest: name for name, digest in sources.load().sample.items()}
    for _, files in packages(folder, missing):
        found |= {
            names[digest]: content for _, content in files if (digest := hashlib.sha256(content).hexdigest()) in names
        }
    missing += [f"no package has {name} with its SHA-256" for name in sorted({*names.values()} - {*found})]
    for name, content in () if missing else found.items():
        _write(folder / name, content)
    return missing


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def main(argv: list[str]) -> int:
    """Returns 1 if a package or a file of the sample is missing."""
    parser = argparse.ArgumentParser(prog="mercury_lab.training held-out", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the files")
    parser.add_argument("--sample", action="store_true", help="only the files that evaluation completes by default")
    options = parser.parse_args(argv)
    missing = (build_sample if options.sample else build)(options.out)
    for reason in missing:
        print(f"missing: {reason}", file=sys.stderr)
    return 1 if missing else 0
