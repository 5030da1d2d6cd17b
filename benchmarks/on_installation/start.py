"""A cold start: from the editor's starting the command to the first suggestion."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mercury_lab.editing.client import Client

from mercury_lsp.errors import UsageError

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
"""Writing 3 makes Linux forget the files it has read."""

BEFORE_CURSOR = "def area(width, height):\n    return width * height\n\n\ndef perimeter(width, height):\n    return "
"""A document for which the bundled model is sure enough of its suggestion to show it."""

TRIES = 50
"""Requests after which there will be no suggestion."""


def seconds_to_suggestion(command: Sequence[str], root: Path) -> float:
    """Seconds from starting the command to the first answer that suggests something. Raises UsageError."""
    begun = time.perf_counter()
    with Client(command) as client:
        introduce(client, root)
        document = {"uri": (root / "start.py").as_uri(), "languageId": "python", "version": 1, "text": BEFORE_CURSOR}
        client.notify("textDocument/didOpen", {"textDocument": document})
        place = {"line": BEFORE_CURSOR.count("\n"), "character": len(BEFORE_CURSOR.rpartition("\n")[2])}
        asked = {"textDocument": {"uri": document["uri"]}, "position": place, "context": {"triggerKind": 2}}
        for _ in range(TRIES):
            if client.request("textDocument/inlineCompletion", asked)["items"]:
                return time.perf_counter() - begun
    raise UsageError("; ".join(client.messages) or "the server suggests nothing; choose another document")


def introduce(client: Client, root: Path) -> None:
    """What an editor says before it opens documents."""
    folders = [{"uri": root.as_uri(), "name": root.name}]
    about: dict[str, Any] = {"processId": os.getpid(), "rootUri": root.as_uri(), "workspaceFolders": folders}
    client.request("initialize", about | {"capabilities": {}})
    client.notify("initialized", {})


def fastest(start: Callable[[], float], runs: int, is_cold: bool) -> list[float]:
    """The seconds of each run, sorted; `is_cold` has the system forget all files before each."""
    found = []
    for _ in range(runs):
        if is_cold:
            os.sync()
            DROP_CACHES.write_text("3")
        found.append(round(start(), 3))
    return sorted(found)


def can_drop_caches() -> bool:
    """Whether the system lets us forget files it has read."""
    try:
        with DROP_CACHES.open("w"):
            return True
    except OSError:
        return False
