"""What commands have in common at a terminal: tables, JSON and questions."""

import json
import sys
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from mercury_lsp.errors import UsageError


def table() -> Table:
    """An empty table without a frame."""
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
