"""`mercury-lsp complete FILE:LINE:COL`: prints the text that an editor shows there.

The commands that show more of it find the text as this one does.
"""

import argparse
import re
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mercury_engine.api import Control, Fill, InferenceEngine, OnStep

from mercury_lsp.commands.terminal import add_model_argument, load, note, print_json, settings_for
from mercury_lsp.completion.postprocessing import postprocess
from mercury_lsp.completion.price import Price
from mercury_lsp.completion.silence import why_silent
from mercury_lsp.context import lookup_text
from mercury_lsp.context.context import CompletionContext, ContextBuilder
from mercury_lsp.context.workspace import is_ignored, is_secret
from mercury_lsp.documents.document import Document, Snapshot
from mercury_lsp.documents.languages import language_of
from mercury_lsp.documents.roots import path_of
from mercury_lsp.documents.syntax import first_error
from mercury_lsp.engine_host.loading import filled
from mercury_lsp.errors import UsageError
from mercury_lsp.settings import Settings, is_elsewhere

_POSITION = re.compile(r"(.+):([1-9][0-9]{0,17}):([1-9][0-9]{0,17})", re.DOTALL)
_BREAK = re.compile(r"\r\n|\r|\n")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("position", metavar="FILE:LINE:COL", help="line and column count from 1")
    parser.add_argument("--json", action="store_true", help="print an object with text, reason, confidence, steps ...")
    add_model_argument(parser, "what editors use, a remote engine too")


def run(arguments: argparse.Namespace) -> int:
    """Print the text that an editor shows automatically at the position, or why it shows none."""
    context, snapshot = context_of(arguments.position)
    settings = settings_for(arguments.model)
    engine = load(settings)
    shown = Shown.of(engine, settings, context, snapshot)
    if arguments.json:
        print_json(
            {
                "text": shown.text,
                "reason": shown.reason,
                "confidence": round(shown.fill.confidence, 4),
                "steps": shown.fill.steps,
                "elapsed_ms": round(shown.fill.elapsed * 1000, 3),
                "device": engine.device,
                "model": engine.name,
            }
        )
    elif shown.reason is None:
        sys.stdout.write(f"{shown.text}\n")
    else:
        note(shown.complaint)
    return 0


@dataclass(frozen=True, slots=True)
class Shown:
    """A fill and the text that an editor shows of it."""

    fill: Fill
    text: str
    """The shown text; empty if there is none."""
    reason: str | None
    """Why nothing is shown; None if the text is."""

    @classmethod
    def of(
        cls,
        engine: InferenceEngine,
        settings: Settings,
        context: CompletionContext,
        snapshot: Snapshot,
        on_step: OnStep | None = None,
    ) -> "Shown":
        """Fill the gap as for an automatic request, without a deadline. Raises what the engine raises."""
        if context.on_secret:
            reason = "the line looks like a secret; the model does not see it"
            return cls(Fill("", 0.0, steps=0, elapsed=0.0), "", reason)
        utility = Price().gate(engine.utility, settings.eagerness, context.language_id)
        request = replace(context.request(), effort=settings.effort, utility=utility)
        check = partial(first_error, snapshot, context.offset)
        path = path_of(snapshot.uri)
        stays_here = is_elsewhere(settings.engine) and path is not None and is_ignored(path, None)
        fill = filled(engine, request, Control(on_step=on_step, check=check, stays_here=stays_here))
        text = postprocess(fill.text, context, snapshot)
        if text:
            why = why_silent(text, fill.confidence, fill.is_finished, context, utility)
        elif fill.text:
            why = f"the code around the cursor already says {fill.text!r}"
        else:
            why = "the model is not sure enough of anything that could come here"
        return cls(fill, "" if why else text, why)

    @property
    def complaint(self) -> str:
        """A sentence that says why nothing is shown; empty if something is."""
        return f"an editor shows nothing here, because {self.reason}" if self.reason else ""


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
