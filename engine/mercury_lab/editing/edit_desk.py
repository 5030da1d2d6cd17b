"""A user who edits documents in an editor of their own and asks the language server for the next edit.

All editors of a run share a daemon, as they do at a user's desk: the model is loaded once, and every scenario has a
connection, so a history, of its own.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any
from urllib.parse import quote

from mercury_engine.text.lines import lines_of

from mercury_lab.editing.client import Client
from mercury_lab.editing.line_edits import LineEdit, keystrokes, line_edit
from mercury_lab.editing.scenarios import Scenario
from mercury_lsp.daemon.address import default_address
from mercury_lsp.daemon.control import stop
from mercury_lsp.documents.languages import language_of
from mercury_lsp.documents.utf16 import chars_within, utf16_length
from mercury_lsp.errors import UsageError

WAYS = ("unasked", "by key")
"""How the user asks: `copilotInlineEdit` after the last change, or the command `mercury.nextEdit`."""

SERVER_COMMAND = (sys.executable, "-m", "mercury_lsp")

RUNTIME_VARIABLE = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_RUNTIME_DIR"
"""Names the folder of the daemon's socket."""

CAPABILITIES = {
    "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}},
    "window": {"showDocument": {"support": True}},
    "experimental": {"mercury": {"editsElsewhere": True, "source": True}},
}

FOLDER = "file:///scenario/"
"""Where the documents are; none of them is on disk."""


@dataclass(frozen=True, slots=True)
class Jump:
    """A line that the user is taken to, without an edit."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The edit that was shown, None for none, and the milliseconds until it was there."""

    edit: LineEdit | None
    milliseconds: float
    jump: Jump | None = None
    """Where the user is taken if no edit is shown."""
    source: str = ""
    """Who proposed the edit, if the server says so: see `mercury_lsp.completion.suggestions.Source`."""


@contextmanager
def own_daemon() -> Iterator[None]:
    """Editors started within share a daemon that nobody else uses; it is stopped afterwards."""
    before = os.environ.get(RUNTIME_VARIABLE)
    with TemporaryDirectory(prefix="mercury-") as folder:
        os.environ[RUNTIME_VARIABLE] = folder
        try:
            yield
        finally:
            stop(default_address())
            del os.environ[RUNTIME_VARIABLE]
            if before is not None:
                os.environ[RUNTIME_VARIABLE] = before


class EditDesk:
    """The documents of one scenario, opened over a new connection, so that it has no history of another one."""

    def __init__(self, settings: Mapping[str, Any]):
        self._client = Client(SERVER_COMMAND)
        self._settings = settings
        self._texts: dict[str, str] = {}
        self._versions: dict[str, int] = {}
        self._source = ""

    def __enter__(self) -> "EditDesk":
        self._client.__enter__()
        self._client.initialize(self._settings, CAPABILITIES, [{"uri": FOLDER.removesuffix("/"), "name": "scenario"}])
        return self

    def __exit__(self, *problem: object) -> None:
        self._client.__exit__(*problem)

    @property
    def model(self) -> str:
        return self._client.model

    def work(self, scenario: Scenario) -> None:
        """Open the files, ask for nothing worth showing so that the model is loaded, and make the edits."""
        for path, text in scenario.files.items():
            self._texts[path], self._versions[path] = text, 1
            document = {"uri": uri(path), "languageId": language_of(path), "version": 1, "text": text}
            self._client.notify("textDocument/didOpen", {"textDocument": document})
        self._unasked(next(iter(scenario.files)), 0)
        for edit in scenario.edits:
            for start, end, text in keystrokes(self._texts[edit.path], edit):
                self._change(edit.path, start, end, text)

    def ask(self, scenario: Scenario, way: str) -> Answer:
        """The first edit that is shown. Raises UsageError if the server reports a problem."""
        path, offset = scenario.cursor
        started = perf_counter()
        found = self._unasked(path, offset) if way == "unasked" else self._by_key(path)
        milliseconds = 1000 * (perf_counter() - started)
        if found is not None:
            return Answer(found, milliseconds, source=self._source)
        return Answer(None, milliseconds, None if way == "unasked" else self._jump_by_key())

    def _unasked(self, path: str, offset: int) -> LineEdit | None:
        edits = self._client.request("textDocument/copilotInlineEdit", self._at(path, offset))["edits"]
        if self._client.messages:
            raise UsageError(self._client.messages[0])
        if not edits:
            return None
        self._source = edits[0].get("mercury", {}).get("source", "")
        return self._edit(edits[0]["textDocument"]["uri"], edits[0]["range"], edits[0]["text"])

    def _jump_by_key(self) -> Jump | None:
        """Where the command took the user."""
        for shown in self._client.shown[-1:]:
            return Jump(self._path(shown["uri"]), shown["selection"]["start"]["line"])
        return None

    def _at(self, path: str, offset: int) -> dict[str, Any]:
        document = {"uri": uri(path), "version": self._versions[path]}
        return {"textDocument": document, "position": position(self._texts[path], offset)}

    def _path(self, shown_uri: str) -> str:
        return next(each for each in self._texts if uri(each) == shown_uri)

    def _by_key(self, path: str) -> LineEdit | None:
        self._client.applied.clear()
        self._client.shown.clear()
        self._source = ""
        argument = {"textDocument": {"uri": uri(path), "version": self._versions[path]}}
        self._client.request("workspace/executeCommand", {"command": "mercury.nextEdit", "arguments": [argument]})
        self._client.messages.clear()  # "no next edit" is an answer
        for change in self._client.applied[:1]:
            first = change["edit"]["documentChanges"][0]
            return self._edit(first["textDocument"]["uri"], first["edits"][0]["range"], first["edits"][0]["newText"])
        return None

    def _change(self, path: str, start: int, end: int, text: str) -> None:
        old = self._texts[path]
        span = {"start": position(old, start), "end": position(old, end)}
        self._texts[path], self._versions[path] = old[:start] + text + old[end:], self._versions[path] + 1
        document = {"uri": uri(path), "version": self._versions[path]}
        changes = [{"range": span, "text": text}]
        self._client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def _edit(self, shown_uri: str, span: Mapping[str, Any], text: str) -> LineEdit:
        """An edit by whole lines."""
        path = self._path(shown_uri)
        old = self._texts[path]
        start, end = (offset_of(old, span[side]) for side in ("start", "end"))
        return line_edit(path, old, start, end, text)


def uri(path: str) -> str:
    return FOLDER + quote(path)


def position(text: str, offset: int) -> dict[str, int]:
    line = text.rfind("\n", 0, offset) + 1
    return {"line": text.count("\n", 0, offset), "character": utf16_length(text[line:offset])}


def offset_of(text: str, at: Mapping[str, int]) -> int:
    lines = lines_of(text)
    if at["line"] >= len(lines):
        return len(text)
    start = sum(map(len, lines[: at["line"]]))
    return start + chars_within(lines[at["line"]].rstrip("\n"), at["character"])
