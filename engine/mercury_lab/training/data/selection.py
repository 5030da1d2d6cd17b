"""Select the files of a package that go into the corpus."""

import hashlib
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable

from mercury_engine.text.paths_of_tests import is_test

from mercury_lab.training.data import filters, sources
from mercury_lab.training.data.duplicates import Duplicates
from mercury_lab.training.data.sources import PackageSource, SourceFile


def select(
    source: PackageSource,
    files: Iterable[tuple[str, bytes]],
    duplicates: Duplicates,
    held_names: frozenset[str] = frozenset(),
    caps: dict[str, int] | None = None,
    dropped: Counter[str] | None = None,
) -> list[SourceFile]:
    """The files of a package that are kept, by path; `dropped` counts the reasons for the others.

    `caps` (bytes by language, or "default") are filled with tests last and otherwise in an arbitrary fixed order, so
    that a cap takes files from all parts of a package.
    """
    dropped = Counter() if dropped is None else dropped
    room = defaultdict(lambda: caps["default"] if caps else sys.maxsize, caps or {})
    kept = []
    for path, content in sorted(files, key=lambda item: _rank(item[0])):
        language = filters.language_of(path, content)
        if language is None:
            continue
        text, fault = _judge(path, content, language, held_names)
        size = len(text.encode())
        if not fault and size > room[language]:
            fault = "over the cap"
        fault = fault or duplicates.add(text)
        if fault:
            dropped[fault] += 1
            continue
        room[language] -= size
        kept.append(SourceFile(path, source.name, language, text))
    return sorted(kept, key=lambda file: file.path)


def _rank(path: str) -> tuple[bool, bytes]:
    return is_test(path), hashlib.sha256(path.encode()).digest()


def _judge(path: str, content: bytes, language: str, held_names: frozenset[str]) -> tuple[str, str | None]:
    """The text, and the reason why it is dropped or None."""
    if sources.held_out_in(path, held_names):
        return "", "held out"
    if fault := filters.path_fault(path, language):
        return "", fault
    text = filters.text_of(content, language)
    return ("", "large or not UTF-8") if text is None else (text, filters.text_fault(text))
