"""Ordinary code: which lines of it are hidden, by package, with an interval over packages."""

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mercury_lsp.documents import redaction
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.languages import language_of
from mercury_lsp.documents.secret_text.blocks import LINE

SKIPPED = frozenset(("node_modules", ".git", "dist", "build", "vendor", "__pycache__"))
MAX_FILE_BYTES = 300_000
MAX_PACKAGE_CHARS = 500_000
"""Characters that are read of one package, so that no large one decides alone."""

MAX_LINE_CHARS = 2_000
"""Files with longer lines are generated or minified: nothing is suggested in them."""

_MORE_IDS = {"rb": "ruby", "php": "php", "kt": "kotlin", "cs": "csharp", "pl": "perl", "pm": "perl", "vim": "vim"}
"""Languages of code, by extension, that the server has no grammar for."""

NOT_CODE = frozenset(("json", "yaml", "toml", "html"))
"""Languages of settings and documents; their files are not counted as code."""


@dataclass
class Package:
    """What is hidden of one package."""

    name: str
    chars: int = 0
    hidden: int = 0
    languages: Counter[str] = field(default_factory=Counter)
    lines: list[tuple[str, str]] = field(default_factory=list)
    """Hidden lines, with the path of their file."""


def packages(roots: Iterable[Path]) -> Iterator[tuple[str, list[Path]]]:
    """The folders right below some roots, and single files there as one more, with their source files.

    npm's scopes (`@types`) count by the folders below them.
    """
    for root in roots:
        folders = [each for each in sorted(root.iterdir()) if each.is_dir() and not each.is_symlink()]
        scopes = [each for each in folders if each.name.startswith("@")]
        folders += [below for scope in scopes for below in sorted(scope.iterdir()) if below.is_dir()]
        for folder in folders:
            if (
                folder not in scopes
                and folder.name not in SKIPPED | {"site-packages"}
                and (found := [*_sources(folder)])
            ):
                yield str(folder.relative_to(root)), found
        if single := [each for each in root.iterdir() if _is_source(each)]:
            yield f"files of {root.name}", sorted(single)


def is_held_back(package: str) -> bool:
    """Whether a package is of the quarter that no rule was tuned on."""
    return hashlib.sha256(package.encode()).digest()[0] % 4 == 3


def measured(name: str, files: Sequence[Path]) -> Package:
    """What is hidden of a package's files; they are read in an order that does not depend on their names."""
    made = Package(name)
    for path in sorted(files, key=lambda each: hashlib.sha256(each.name.encode()).digest()):
        if made.chars > MAX_PACKAGE_CHARS:
            break
        text = path.read_text("utf-8", "replace")
        if max(map(len, text.split("\n"))) > MAX_LINE_CHARS:
            continue
        language = _language(path)
        made.chars += len(text)
        made.languages[language] += len(text)
        for line in hidden_of(text, language, path.absolute().as_uri()):
            made.hidden += len(line)
            made.lines.append((str(path), line))
    return made


def hidden_of(text: str, language: str, uri: str) -> Iterator[str]:
    """The lines of a text that are hidden."""
    pieces = ChunkedText.of(text).chunks
    for number, piece in enumerate(pieces):
        if (clean := redaction.chunk_without_secrets(pieces, number, language)) is not piece:
            left = Counter(LINE.findall(clean))
            for line in LINE.findall(piece):
                if left[line]:
                    left[line] -= 1
                else:
                    yield line


def share(found: Sequence[Package]) -> float:
    return sum(each.hidden for each in found) / max(1, sum(each.chars for each in found))


def interval(
    items: Sequence[object], figure: Callable[[Sequence], float], draws: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """The middle 95 % of a figure over samples of the items, drawn with replacement."""
    chance = random.Random(seed)
    figures = sorted(figure(chance.choices(items, k=len(items))) for _ in range(draws))
    return figures[int(0.025 * draws)], figures[int(0.975 * draws)]


def _sources(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        inside = path.relative_to(folder).parts
        if SKIPPED.isdisjoint(inside) and not any(part.startswith(".") for part in inside) and _is_source(path):
            yield path


def _is_source(path: Path) -> bool:
    return _language(path) not in NOT_CODE | {"plaintext"} and path.is_file() and path.stat().st_size <= MAX_FILE_BYTES


def _language(path: Path) -> str:
    return _MORE_IDS.get(path.suffix.removeprefix("."), language_of(path.name))
