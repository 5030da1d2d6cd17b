"""Get the repositories kept for evaluation: `python -m mercury_lab.training held-out --out DIR`.

Writes the source files of the packages in sources.toml to DIR, a folder for each package, and keeps the archives beside
it, so that an interrupted build can resume. Evaluation takes DIR as --corpus; training leaves out what is in it.
"""

import argparse
import sys
from pathlib import Path

from rich.progress import track

from mercury_lab.training.data import sources
from mercury_lab.training.data.selection import select
from mercury_lab.training.data.sources import SourceError


def build(folder: Path) -> list[str]:
    """Write the selected files of all held-out packages; returns why packages are missing."""
    missing = list[str]()
    for source in track(sources.load().held_out, "Reading packages"):
        try:
            archive = sources.fetch(source, folder.with_name(folder.name + "-archives"))
            found = select(source.name, sources.archive_files(source, archive))
        except SourceError as error:
            missing.append(str(error))
            continue
        for file in found:
            name = file.path.removeprefix(f"{file.package}/")
            path = folder / file.package.rpartition("/")[2] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text, "utf-8", newline="\n")
    return missing


def main(argv: list[str]) -> int:
    """Returns 1 if a package is missing."""
    parser = argparse.ArgumentParser(prog="mercury_lab.training held-out", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the files")
    options = parser.parse_args(argv)
    missing = build(options.out)
    for reason in missing:
        print(f"missing: {reason}", file=sys.stderr)
    return 1 if missing else 0
