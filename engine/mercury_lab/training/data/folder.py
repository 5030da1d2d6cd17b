"""The source files of a folder of packages, such as the held-out one."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from mercury_lab.training.data import filters
from mercury_lab.training.data.corpus import SourceFile


def source_files(folder: Path) -> list[SourceFile]:
    """The source files in a folder of packages, one of each package in turn."""
    packages: dict[str, list[SourceFile]] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        content = path.read_bytes() if path.is_file() and "/" in name else b""
        language = filters.language_of(name, content) if content else None
        if language:
            package = name.partition("/")[0]
            packages.setdefault(package, []).append(SourceFile(name, package, language, content.decode()))
    return list(_in_turn(packages.values()))


def _in_turn(groups: Iterable[Sequence[SourceFile]]) -> Iterable[SourceFile]:
    """The first file of every group, then the second of each group that has one, and so on."""
    groups = list(groups)
    for number in range(max(map(len, groups), default=0)):
        yield from (group[number] for group in groups if number < len(group))
