"""Select the source files of packages and of folders of them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Set
from pathlib import Path

from mercury_lab.training.data import filters, sources
from mercury_lab.training.data.contamination import Fingerprints, digest
from mercury_lab.training.data.sources import SourceError, SourceFile


def select(
    package: str,
    files: Iterable[tuple[str, bytes]],
    held_names: Set[str] = frozenset(),
    known: Fingerprints | None = None,
    dropped: Counter[str] | None = None,
) -> list[SourceFile]:
    """The files of a package that are kept, by path; `dropped` counts the reasons for the others.

    `held_names` and `known`: the names and the text of what is held out.
    """
    dropped, seen, kept = Counter[str]() if dropped is None else dropped, set[bytes](), list[SourceFile]()
    for path, content in sorted(files):
        language = filters.language_of(path, content)
        if language is None:
            continue
        text, fault = _judge(path, content, language, held_names)
        fault = fault or (known.fault(text) if known else None) or ("duplicate" if digest(text) in seen else None)
        if fault:
            dropped[fault] += 1
            continue
        seen.add(digest(text))
        kept.append(SourceFile(path, package, language, text))
    return kept


def _judge(path: str, content: bytes, language: str, held_names: Set[str]) -> tuple[str, str | None]:
    """The text, and the reason why it is dropped or None."""
    if sources.held_out_in(path, held_names):
        return "", "held out"
    if fault := filters.path_fault(path, language):
        return "", fault
    text = filters.text_of(content, language)
    return ("", "large or not UTF-8") if text is None else (text, filters.text_fault(text))


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
