"""`mercury-lsp try`: completes examples and prints what an editor would show."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

import mercury_lsp
from mercury_lsp.commands.complete import Shown, context_at, decoded, read_bytes
from mercury_lsp.commands.terminal import add_model_argument, load, settings_for
from mercury_lsp.context.context import CompletionContext
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.errors import UsageError
from mercury_lsp.installed_models import larger

CURSOR_MARK = "‹cursor›"
"""Marks the cursor in an example; it is removed before the file is opened."""

SHOWN_LINES = 4


@dataclass(frozen=True, slots=True)
class SampleFile:
    """A file and the cursor in it."""

    path: Path
    before: str
    after: str

    def context(self) -> tuple[CompletionContext, Snapshot]:
        """The text around the cursor. Raises UsageError if the model must not see the file."""
        return context_at(self.path, self.before + self.after, len(self.before))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", type=Path, help=f"files that contain {CURSOR_MARK} (default: the bundled examples)"
    )
    add_model_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the suggestion at the cursor of every example."""
    samples = examples(arguments.folder or bundled_folder())
    console = Console(highlight=False)
    settings = settings_for(arguments.model)
    engine = load(settings)
    for example in samples:
        _show(console, example, Shown.of(engine, settings, *example.context()))
    if arguments.model is None and (hint := larger.hint()):
        console.print(Text(hint), soft_wrap=True)
    return 0


def examples(folder: Path) -> list[SampleFile]:
    """The files of a folder that have a cursor mark. Raises UsageError."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; name a folder of files that contain {CURSOR_MARK}")
    found = []
    for path in sorted(folder.iterdir()):
        if path.is_file() and CURSOR_MARK.encode() in (content := read_bytes(path)):
            before, _, after = decoded(content, path).partition(CURSOR_MARK)
            found.append(SampleFile(path, before, after))
    if not found:
        raise UsageError(f"no file in {folder} contains {CURSOR_MARK}")
    return found


def bundled_folder() -> Path:
    """The folder of the examples: beside the package in a checkout, inside it if installed."""
    package = Path(mercury_lsp.__file__).parent
    inside = package / "examples"
    return inside if inside.is_dir() else package.parent / "examples"


def _show(console: Console, example: SampleFile, shown: Shown) -> None:
    console.rule(Text(example.path.name, "bold"), align="left")
    before = "\n".join(example.before.split("\n")[-SHOWN_LINES - 1 :])
    after = "\n".join(example.after.split("\n")[: SHOWN_LINES + 1]).rstrip()
    language = Syntax.guess_lexer(example.path.name)
    lexer = Syntax("", language, background_color="default")
    console.print(lexer.highlight(before)[:-1] + Text(shown.text, "dim italic") + lexer.highlight(after))
    fill = shown.fill
    figures = f"{fill.steps} steps, {fill.elapsed * 1000:.1f} ms, confidence {fill.confidence:.2f}"
    console.print(Text(shown.complaint or figures, "cyan"))
