"""A commit as an edit of several files in steps; what `commits` stores, one JSON object per line."""

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mercury_lab.training.data.sources import SourceError


@dataclass(frozen=True, slots=True)
class CommitFile:
    """A file as it was before the commit."""

    path: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """Lines [start, end) of files[file] become `text`; lines are counted from 0 in the old text."""

    file: int
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class CommitEdit:
    """The steps of a commit from top to bottom, file by file.

    The first `changed` files have steps; the others were changed by earlier commits and stand for open documents.
    """

    repository: str
    commit: str
    files: tuple[CommitFile, ...]
    changed: int
    steps: tuple[Step, ...]

    @property
    def language(self) -> str:
        """The language of the first step's file."""
        return self.files[self.steps[0].file].language


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that readers see the old content or the new, never a part."""
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)


def write(path: Path, edits: Iterable[CommitEdit]) -> None:
    """Replace a file of edits; equal edits give equal bytes."""
    packed = b"".join(json.dumps(asdict(edit), ensure_ascii=False).encode() + b"\n" for edit in edits)
    replace_file(path, gzip.compress(packed, 6, mtime=0))


def read(path: Path) -> Iterator[CommitEdit]:
    """The edits of a file that `write` made; raises SourceError."""
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as rows:
            for row in rows:
                yield _parsed(json.loads(row))
    except (OSError, EOFError, ValueError, TypeError) as error:
        raise SourceError(f"{path} cannot be read ({error}); run `mercury_lab.training commits` again") from error


def _parsed(record: dict[str, Any]) -> CommitEdit:
    files = tuple(CommitFile(**file) for file in record.pop("files"))
    return CommitEdit(files=files, steps=tuple(Step(**step) for step in record.pop("steps")), **record)
