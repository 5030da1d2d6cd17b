"""The source files of a folder of packages or clones, such as the held-out one."""

from collections import defaultdict
from pathlib import Path

from mercury_lab.training.data import sources
from mercury_lab.training.data.contamination import Fingerprints
from mercury_lab.training.data.selection import select
from mercury_lab.training.data.sources import SourceError, SourceFile


def training_files(folder: Path, held_out: Path | None = None) -> list[SourceFile]:
    """The source files that may be trained on: none of a held-out name, and none with text of the held-out folder.

    Raises SourceError if there are none.
    """
    known = None if held_out is None else Fingerprints.of([file.text for file in source_files(held_out)])
    names = sources.load().held_names
    found = [file for name, files in _packages(folder).items() for file in select(name, files, names, known)]
    if not found:
        raise SourceError(f"no source files in the folders of {folder}; put clones there, a folder for each")
    return found


def source_files(folder: Path) -> list[SourceFile]:
    """The source files of the packages in a folder, without looking for held-out ones."""
    return [file for name, files in _packages(folder).items() for file in select(name, files)]


def _packages(folder: Path) -> dict[str, list[tuple[str, bytes]]]:
    """Path and content of the files of every package; paths begin with the package."""
    found = defaultdict[str, list[tuple[str, bytes]]](list)
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and "/" in name:
            found[name.partition("/")[0]].append((name, path.read_bytes()))
    return found
