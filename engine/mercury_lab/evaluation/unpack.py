"""Unpack a corpus: `python -m mercury_lab.evaluation unpack --from DIR --out DIR [--packages NAME ...]`.

It reads a folder written by the corpus step (with `--held-out`: the repositories kept for evaluation) and writes its
files below OUT/PACKAGE, so that other suites can use them with `--corpus OUT` or `--fit OUT`.
"""

import argparse
import sys
from pathlib import Path, PurePosixPath

from mercury_engine.errors import ModelNotFound

from mercury_lab.training.data.corpus import MANIFEST, read_files


def unpack(folder: Path, out: Path, packages: list[str] | None = None) -> int:
    """Write the files of the packages (None: all packages); returns the number of files. Raises ModelNotFound."""
    if not (folder / MANIFEST).is_file():
        raise ModelNotFound(f"no {MANIFEST} in {folder}; name a folder written by the corpus step with --from")
    count = 0
    for file in read_files(folder):
        if packages is None or file.package in packages:
            path = out / file.package / _below(file.path, file.package)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text, "utf-8", newline="\n")
            count += 1
    if not count:
        raise ModelNotFound(f"{folder} has no file of {', '.join(packages or ['any package'])}; see its {MANIFEST}")
    return count


def _below(path: str, package: str) -> PurePosixPath:
    """The path relative to the package's folder, without parts that would lead out of it."""
    parts = [part for part in PurePosixPath(path).parts if part not in ("/", "..")]
    return PurePosixPath(*(parts[1:] if len(parts) > 1 and parts[0] == package else parts))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mercury_lab.evaluation unpack", description=__doc__)
    parser.add_argument("--from", dest="source", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--packages", nargs="+")
    options = parser.parse_args(argv)
    print(f"{unpack(options.source, options.out, options.packages)} files in {options.out}", file=sys.stderr)
    return 0
