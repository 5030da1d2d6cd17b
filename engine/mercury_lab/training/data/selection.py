"""Select the source files of a package."""

from collections import Counter
from collections.abc import Iterable, Set

from mercury_lab.training.data import filters, sources
from mercury_lab.training.data.contamination import Fingerprints, digest
from mercury_lab.training.data.sources import SourceFile


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
