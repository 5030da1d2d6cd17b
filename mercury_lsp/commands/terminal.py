"""What commands have in common at a terminal: arguments, loading a model, tables, JSON and questions.

`mercury-lsp serve` imports it before it listens, so what is slow to import is imported where it is needed.
"""

import argparse
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mercury_lsp import default_model
from mercury_lsp.errors import UsageError
from mercury_lsp.settings import Settings, named_engines

if TYPE_CHECKING:
    from mercury_engine.api import InferenceEngine
    from rich.table import Table


def number(kind: Callable[[str], float], lowest: int, highest: int) -> Callable[[str], float]:
    """A parser of numbers in a range, both ends included."""

    def parsed(text: str) -> float:
        try:
            if lowest <= (value := kind(text)) <= highest:
                return value
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {lowest} to {highest}")

    return parsed


def add_model_argument(parser: argparse.ArgumentParser, default: str = "the one that editors use") -> None:
    """Declare `--model`; `default` describes the model used without it."""
    help_text = f"a folder, GGUF file, model name or bundled (default: {default})"
    parser.add_argument("--model", metavar="MODEL", help=help_text)


def settings_for(model: str | None) -> Settings:
    """The settings of a command: the model of its option, else the editors' model or remote engine.

    Raises SettingsError and ModelNotFound.
    """
    engine = next(iter(named_engines()), None) if model is None else None
    return Settings.parse({"model": default_model.named(model), "engine": engine})


def load(settings: Settings) -> "InferenceEngine":
    """The engine of the settings; a terminal shows that it is loading, or where a remote engine sends the text.

    Raises what `load_engine` raises.
    """
    from mercury_lsp.engine_host.loading import load_engine

    if sys.stderr.isatty():
        sys.stderr.write("loading the model ...\n" if settings.engine is None else f"asking {settings.engine} ...\n")
    engine = load_engine(settings)
    if notice := getattr(engine, "notice", ""):
        sys.stderr.write(f"{notice}\n")
    return engine


def table() -> "Table":
    """An empty table without a frame."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)


def print_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def note(text: str) -> None:
    """Print a line that is not the command's result."""
    sys.stderr.write(f"{text}\n")


def agrees(question: str) -> bool:
    """Whether the user answers yes. Raises UsageError without a terminal."""
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask at; add --yes")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
