"""`mercury-lsp try`: completes examples through the server, as an editor would."""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

import mercury_lsp
from mercury_lsp import default_model
from mercury_lsp.commands.client import Client
from mercury_lsp.commands.file_position import decoded, read_bytes
from mercury_lsp.documents.languages import language_of
from mercury_lsp.documents.utf16 import utf16_length
from mercury_lsp.errors import UsageError
from mercury_lsp.installed_models import larger

CURSOR_MARK = "‹cursor›"
"""Marks the cursor in an example; it is removed before the file is opened."""

SERVER_COMMAND = (sys.executable, "-m", "mercury_lsp", "--in-process")
"""In process, so that no daemon is left running afterwards."""

CAPABILITIES = {"experimental": {"mercury": {"confidence": True}}}

SHOWN_LINES = 4


@dataclass(frozen=True, slots=True)
class SampleFile:
    """A file and the cursor in it."""

    path: Path
    before: str
    after: str

    @property
    def position(self) -> dict[str, int]:
        """The cursor as LSP writes it."""
        line = self.before.rpartition("\n")[2]
        return {"line": self.before.count("\n"), "character": utf16_length(line)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "folder", nargs="?", type=Path, help=f"files that contain {CURSOR_MARK} (default: the bundled examples)"
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="a folder, GGUF file, model name or bundled (default: the one that editors use)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the suggestion at the cursor of every example."""
    examples = _examples(arguments.folder or _bundled_folder())
    console = Console(highlight=False)
    with Client(SERVER_COMMAND) as client:
        _start(client, default_model.named(arguments.model))
        with console.status("loading the model"):
            suggestions = [_ask(client, example) for example in examples]
    for message in client.messages:
        console.print(Text(message, "red"))
    for example, suggestion in zip(examples, suggestions, strict=True):
        _show(console, example, suggestion)
    if arguments.model is None and (hint := larger.hint()):
        console.print(Text(hint), soft_wrap=True)
    return 1 if client.messages else 0


def read_example(path: Path) -> SampleFile | None:
    """The example in a file; None if it has no cursor mark, whether it is text or not. Raises UsageError."""
    content = read_bytes(path)
    if CURSOR_MARK.encode() not in content:
        return None
    before, _, after = decoded(content, path).partition(CURSOR_MARK)
    return SampleFile(path, before, after)


def _examples(folder: Path) -> list[SampleFile]:
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; name a folder of files that contain {CURSOR_MARK}")
    examples = [example for path in sorted(folder.iterdir()) if path.is_file() and (example := read_example(path))]
    if not examples:
        raise UsageError(f"no file in {folder} contains {CURSOR_MARK}")
    return examples


def _bundled_folder() -> Path:
    """The examples' folder: beside the package in a checkout, inside it when installed."""
    package = Path(mercury_lsp.__file__).parent
    inside = package / "examples"
    return inside if inside.is_dir() else package.parent / "examples"


def _start(client: Client, model: str | None) -> None:
    options = {"mercury": {"model": model, "statistics": False, "waitForContext": True}}
    client.request(
        "initialize",
        {"processId": None, "rootUri": None, "capabilities": CAPABILITIES, "initializationOptions": options},
    )
    client.notify("initialized", {})


def _ask(client: Client, example: SampleFile) -> dict[str, Any] | None:
    """The suggestion that an editor would get while its user types; None if there is none."""
    uri = example.path.absolute().as_uri()
    document = {
        "uri": uri,
        "languageId": language_of(example.path.name),
        "version": 1,
        "text": example.before + example.after,
    }
    client.notify("textDocument/didOpen", {"textDocument": document})
    answer = client.request(
        "textDocument/inlineCompletion",
        {"textDocument": {"uri": uri}, "position": example.position, "context": {"triggerKind": 2}},
    )
    return next(iter(answer["items"]), None)


def _show(console: Console, example: SampleFile, suggestion: dict[str, Any] | None) -> None:
    console.rule(Text(example.path.name, "bold"), align="left")
    before = "\n".join(example.before.split("\n")[-SHOWN_LINES - 1 :])
    after = "\n".join(example.after.split("\n")[: SHOWN_LINES + 1]).rstrip()
    language = Syntax.guess_lexer(example.path.name)
    lexer = Syntax("", language, background_color="default")
    ghost = Text(suggestion["insertText"] if suggestion else "", "dim italic")
    console.print(lexer.highlight(before)[:-1] + ghost + lexer.highlight(after))
    console.print(Text(_figures(suggestion), "cyan"))


def _figures(suggestion: dict[str, Any] | None) -> str:
    if suggestion is None:
        return "nothing is shown here: the model is not sure enough of a text that would help you"
    figures = suggestion["mercury"]
    return f"{figures['steps']} steps, {figures['elapsedMs']:.1f} ms, confidence {figures['confidence']:.2f}"
