"""The text around a cursor that is given as FILE:LINE:COL, as compilers and editors write it."""

import re
from pathlib import Path

from mercury_lsp.context import lookup_text
from mercury_lsp.context.context import CompletionContext, ContextBuilder
from mercury_lsp.context.workspace import is_secret
from mercury_lsp.documents.document import Document, Snapshot
from mercury_lsp.documents.languages import language_of
from mercury_lsp.errors import UsageError

_POSITION = re.compile(r"(.+):([1-9][0-9]{0,17}):([1-9][0-9]{0,17})", re.DOTALL)
_BREAK = re.compile(r"\r\n|\r|\n")


def context_of(position: str) -> tuple[CompletionContext, Snapshot]:
    """The text around FILE:LINE:COL; lines and columns count from 1, columns in characters, and FILE may hold colons.

    Raises UsageError if the file or the position does not exist, or if no editor gets suggestions in the file.
    """
    if (parts := _POSITION.fullmatch(position)) is None:
        raise UsageError(f"{position!r} is not FILE:LINE:COL with numbers from 1")
    path, line, column = Path(parts[1]), int(parts[2]), int(parts[3])
    text = decoded(read_bytes(path), path)
    lines = _BREAK.split(text)
    if line > len(lines):
        raise UsageError(f"{path} has {_count(len(lines), 'line')}, so there is no line {line}")
    if column > len(lines[line - 1]) + 1:
        columns = _count(len(lines[line - 1]) + 1, "column")
        raise UsageError(
            f"line {line} of {path} has {columns}, counting the one after its last character, so there is no column"
            f" {column}"
        )
    starts = [0, *(found.end() for found in _BREAK.finditer(text))]
    return context_at(path, text, starts[line - 1] + column - 1)


def context_at(path: Path, text: str, offset: int) -> tuple[CompletionContext, Snapshot]:
    """A file's text around an offset. Raises UsageError if no editor gets suggestions in the file."""
    absolute, here = path.absolute(), Path.cwd()
    if is_secret(absolute):
        raise UsageError(f"files named {path.name} often hold secrets, so the model never sees them")
    document = Document(absolute.as_uri(), language_of(str(path)), 0, text)
    if document.oddity is not None:
        raise UsageError(f"nothing is suggested in {path.name}, which {document.oddity}")
    snapshot = document.snapshot()
    shown = absolute.relative_to(here).as_posix() if absolute.is_relative_to(here) else path.name
    context = ContextBuilder().build(snapshot, offset, shown)
    return lookup_text.with_rest_of_document(context, snapshot), snapshot


def decoded(content: bytes, path: Path) -> str:
    """A file's content as text, with its own line breaks. Raises UsageError."""
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
    except OSError as error:
        reason = "is a folder; name a file" if path.is_dir() else f"cannot be read: {error.strerror}"
        raise UsageError(f"{path} {reason}") from None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("s" if number != 1 else "")
