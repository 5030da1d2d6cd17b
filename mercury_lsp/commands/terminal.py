"""What commands have in common at a terminal: numbers as arguments, tables, JSON and questions."""

import json
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mercury_lsp.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table


def number(kind: Callable[[str], float], lowest: int, highest: int) -> Callable[[str], float]:
    """A parser of numbers in a range, both ends included."""

    def parsed(text: str) -> float:
        try:
            if lowest <= (value := kind(text)) <= highest:
                return value
        except ValueError:
            pass
        raise ArgumentTypeError(f"{text!r} is not a number from {lowest} to {highest}")

    return parsed


def table() -> "Table":
    """An empty table without a frame."""
    from rich.box import SIMPLE_HEAD  # the daemon imports this module and draws no tables
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
