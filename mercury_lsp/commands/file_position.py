"""A cursor given as FILE:LINE:COL, as compilers and editors write it."""

import re
from dataclasses import dataclass
from pathlib import Path

from mercury_lsp.context import lookup_text
from mercury_lsp.context.context import CompletionContext, ContextBuilder
from mercury_lsp.context.workspace import is_secret
from mercury_lsp.documents.document import Document, Snapshot
from mercury_lsp.documents.languages import language_of
from mercury_lsp.errors import UsageError

MAX_DIGITS = 18

_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class FilePosition:
    """A cursor in a file; lines and columns count from 1, columns in characters."""

    path: Path
    line: int
    column: int

    @classmethod
    def parse(cls, text: str) -> "FilePosition":
        """Parse FILE:LINE:COL; FILE may contain colons. Raises UsageError."""
        parts = text.rsplit(":", 2)
        if len(parts) != 3 or not parts[0]:
            raise UsageError(f"{text!r} is not FILE:LINE:COL")
        path, line, column = parts
        if not (_is_number(line) and _is_number(column)):
            raise UsageError(f"{text!r} is not FILE:LINE:COL with numbers from 1")
        return cls(Path(path), int(line), int(column))

    def context(self) -> tuple[CompletionContext, Snapshot]:
        """The file's text around the cursor.

        Raises UsageError if the file or the position does not exist, or if no editor gets suggestions in the file.
        """
        text = read_text(self.path)
        return context_at(self.path, text, self._offset(text))

    def _offset(self, text: str) -> int:
        starts = [0, *(found.end() for found in _BREAK.finditer(text))]
        if self.line > len(starts):
            raise UsageError(f"{self.path} has {_count(len(starts), 'line')}, so there is no line {self.line}")
        start = starts[self.line - 1]
        found = _BREAK.search(text, start)
        columns = (found.start() if found else len(text)) - start + 1
        if self.column > columns:
            raise UsageError(
                f"line {self.line} of {self.path} has {_count(columns, 'column')}, counting the one after its"
                f" last character, so there is no column {self.column}"
            )
        return start + self.column - 1


def context_at(path: Path, text: str, offset: int) -> tuple[CompletionContext, Snapshot]:
    """A file's text around an offset. Raises UsageError if no editor gets suggestions in the file."""
    if is_secret(path.absolute()):
        raise UsageError(f"files named {path.name} often hold secrets, so the model never sees them")
    document = Document(path.absolute().as_uri(), language_of(str(path)), 0, text)
    if document.oddity is not None:
        raise UsageError(f"nothing is suggested in {path.name}, which {document.oddity}")
    snapshot = document.snapshot()
    context = ContextBuilder().build(snapshot, offset, _path_shown(path))
    return lookup_text.with_rest_of_document(context, snapshot), snapshot


def read_text(path: Path) -> str:
    """A source file's text, with its own line breaks. Raises UsageError."""
    return decoded(read_bytes(path), path)


def decoded(content: bytes, path: Path) -> str:
    """A file's content as text. Raises UsageError."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start}); convert it first") from None


def read_bytes(path: Path) -> bytes:
    """A file's content. Raises UsageError, including for pipes and devices, whose content may never end."""
    try:
        if not (path.is_file() or path.is_dir()) and path.exists():
            raise UsageError(f"{path} is a pipe or a device; name a file")
        return path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except (IsADirectoryError, PermissionError) as error:
        reason = "is a folder; name a file" if path.is_dir() else f"cannot be read: {error.strerror}"
        raise UsageError(f"{path} {reason}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def _path_shown(path: Path) -> str:
    """The path as the model sees it: relative to the working folder, or the name alone."""
    absolute, here = path.absolute(), Path.cwd()
    return absolute.relative_to(here).as_posix() if absolute.is_relative_to(here) else path.name


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS and int(text) >= 1


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("s" if number != 1 else "")
