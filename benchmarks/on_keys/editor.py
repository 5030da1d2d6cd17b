"""A user at an editor, who types a script into the server over stdio and times every answer."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from mercury_lab.editing.client import Client

from mercury_lsp.documents.utf16 import utf16_length
from mercury_lsp.errors import UsageError
from on_keys.figures import LATENCY_PARTS
from on_keys.script import Key, Script

INLINE_METHOD = "textDocument/inlineCompletion"
INVOKED, AUTOMATIC = 1, 2
"""LSP's trigger kinds: the user's key, and typing."""

OBSERVED_SERVER = Path(__file__).with_name("observed_server.py")

PARSING_SECONDS = 0.7
"""Seconds after opening a document by which the server has certainly begun its full parse."""


@dataclass(slots=True)
class KeyTimes:
    """One key whose answer was awaited; times are seconds of the monotonic clock."""

    kind: str
    sent: float
    answered: float
    shown: bool
    text: str = field(repr=False)
    fill: dict[str, Any] | None = None
    """The stopwatch's record of the answer's fill; None if the model was not called."""
    rewritten: float | None = None
    """When the last rewrite ended that followed a fill with nothing to show; None without one."""

    @property
    def milliseconds(self) -> float:
        return 1e3 * (self.answered - self.sent)

    def parts(self) -> dict[str, float]:
        """Milliseconds in the server, queue, prefill, denoising, and until the lines around the cursor are rewritten.

        Without a fill all is the server's.
        """
        if self.fill is None:
            return dict.fromkeys(LATENCY_PARTS, 0.0) | {"server": self.milliseconds}
        times = [self.fill[name] for name in ("asked", "begun", "read", "ended")]
        queue, encode, denoise = (1e3 * (b - a) for a, b in pairwise(times))
        rewrite = 1e3 * (self.rewritten - times[-1]) if self.rewritten is not None else 0.0
        return {
            "server": self.milliseconds - queue - encode - denoise - rewrite,
            "queue": queue,
            "encode": encode,
            "denoise": denoise,
            "rewrite": rewrite,
        }


class Typist:
    """An editor with open documents; it waits for each answer, so that no slow one is missed."""

    def __init__(self, client: Client, record: Path):
        self._client, self._record = client, record
        self._versions: dict[str, int] = {}
        self.hurried = 0
        """Keys that were followed by another before their answer."""

    @property
    def pid(self) -> int:
        return self._client._process.pid

    def open(self, uri: str, language: str, text: str, cursor: int) -> None:
        """Open a document, let the server parse it, and make it prefill the text around the cursor, as a key does.

        Otherwise it would prefill most of it in the pauses, and those tokens would count as read for the keys.
        """
        self._versions[uri] = 1
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self._client.notify("textDocument/didOpen", {"textDocument": document})
        time.sleep(PARSING_SECONDS)
        self.ask(uri, position(text, cursor), INVOKED)

    def ask(self, uri: str, place: dict[str, int], trigger: int = AUTOMATIC) -> list[dict[str, Any]]:
        """The items at a position, requested as while typing, or as by the user's key."""
        return self._client.request(INLINE_METHOD, _asked(uri, place, trigger))["items"]

    def play(self, uri: str, script: Script, keys: int, paced: bool = True) -> Iterator[KeyTimes]:
        """Type the first keys of a script; returns a row for each key that was not hurried."""
        previous, due = script.text, time.monotonic()
        for key, text in list(script.states())[:keys]:
            due = max(due + key.seconds, time.monotonic()) if paced else 0.0
            if (row := self._press(uri, key, previous, text, due)) is not None:
                yield row
            previous = text

    def _press(self, uri: str, key: Key, previous: str, text: str, due: float) -> KeyTimes | None:
        change, place = _change(key, previous), position(text, key.cursor)
        time.sleep(max(0.0, due - time.monotonic()))
        sent = time.monotonic()
        if key.kind != "jump":
            self._versions[uri] += 1
            document = {"uri": uri, "version": self._versions[uri]}
            self._client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
        if key.hurried:
            self.hurried += 1
            self._client.send({"id": f"hurried {self.hurried}", "method": INLINE_METHOD, "params": _asked(uri, place)})
            return None
        items = self.ask(uri, place)
        return KeyTimes(key.kind, sent, time.monotonic(), bool(items), items[0]["insertText"] if items else "")

    def fills(self) -> list[dict[str, Any]]:
        """All records of the stopwatch so far."""
        return [json.loads(line) for line in self._record.read_text().splitlines()]


def match(rows: list[KeyTimes], fills: list[dict[str, Any]]) -> None:
    """Give every row its fill, the last one requested after the key was sent and finished before the answer.

    What has no steps and ended later is a rewrite. What looks ahead meanwhile is nobody's.
    """
    for row in rows:
        known = (f for f in fills if f["asked"] is not None and not f.get("is_ahead"))
        asked = [f for f in known if row.sent <= f["asked"] and f["ended"] <= row.answered]
        row.fill = max((f for f in asked if f["steps"] is not None), key=lambda f: f["asked"], default=None)
        if row.fill is not None:
            later = (f["ended"] for f in asked if f["steps"] is None and f["ended"] > row.fill["ended"])
            row.rewritten = max(later, default=None)


@contextmanager
def server(root: Path, record: Path, threads: int, model: str | None) -> Iterator[Typist]:
    """A server that has loaded its model. Raises UsageError if it cannot."""
    with Client((sys.executable, str(OBSERVED_SERVER), str(record))) as client:
        options = {"mercury": {"threads": threads, "model": model, "device": "cpu"}}
        about = {"processId": None, "rootUri": root.as_uri(), "capabilities": {}, "initializationOptions": options}
        client.request("initialize", about)
        client.notify("initialized", {})
        typist = Typist(client, record)
        uri = (root / "warm_up.py").as_uri()
        text = "import os\n\n\ndef main():\n    return os."
        typist.open(uri, "python", text, len(text))
        if client.messages:
            raise UsageError("; ".join(client.messages))
        client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        yield typist


def position(text: str, offset: int) -> dict[str, int]:
    """The LSP position, line and UTF-16 column, of an offset in code points."""
    start = text.rfind("\n", 0, offset) + 1
    return {
        "line": text.count("\n", 0, offset),
        "character": utf16_length(text[start:offset]),
    }


def resident_mb(pid: int) -> float | None:
    """Resident memory of a process in MiB; None if the system does not report it."""
    path = Path(f"/proc/{pid}/status")
    lines = path.read_text().splitlines() if path.is_file() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:")), None)


def processor_seconds(pid: int) -> float:
    """Processor seconds of a process so far."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _asked(uri: str, place: dict[str, int], trigger: int = AUTOMATIC) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "position": place, "context": {"triggerKind": trigger}}


def _change(key: Key, text: str) -> dict[str, Any]:
    return {"range": {"start": position(text, key.start), "end": position(text, key.end)}, "text": key.text}
