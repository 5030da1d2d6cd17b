"""A program that stands for mercury-lsp: it lists models and logs what it was asked, or is the scripted server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

MODELS: list[dict[str, Any]] = [
    {"name": "bundled", "installed": True, "in_use": True, "size_bytes": 107e6, "licence": "Apache-2.0", "speed": None},
    {
        "name": "large",
        "installed": True,
        "in_use": False,
        "size_bytes": 537e6,
        "licence": None,
        "speed": {"pass_ms": 20.4, "answer_ms": 60.4, "estimated": False},
    },
    {
        "name": "larger",
        "installed": False,
        "in_use": False,
        "size_bytes": 1117e6,
        "licence": "MIT",
        "speed": {"pass_ms": 60.0, "answer_ms": 180.0, "estimated": True},
    },
]

PROGRAM = """
import json, runpy, sys
folder, models = {folder!r}, {models!r}
if "models" in sys.argv:
    words = sys.argv[sys.argv.index("models") + 1:]
    with open(folder + "/models.jsonl", "a") as log:
        log.write(json.dumps(words) + "\\n")
    if words == ["use", "broken"]:
        sys.exit("mercury-lsp: broken is not installed")
    print(models if words[0] == "list" else "")
else:
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


def command(folder: Path, server: list[str], models: str | None = None) -> list[str]:
    """A command that lists `models` (JSON; MODELS by default) and otherwise runs the server, a command of Python."""
    program = folder / "program.py"
    program.write_text(PROGRAM.format(folder=str(folder), models=json.dumps(MODELS) if models is None else models))
    return [sys.executable, str(program), *server[1:]]


def asked(folder: Path) -> list[list[str]]:
    """The words that followed `models`, for every call."""
    log = folder / "models.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
