"""Shared by the replays of real clients: starting one, its view of the document, and the outcome of a suggestion."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mercury_lsp.statistics import store
from tests.support.editor import Editor, script

URI = "file:///work/sample.py"

FILL = "value(😀)"
"""The suggestion at the end of LINE."""

LINE = script(text=FILL) + "x = "

CANCELLED = -32800

SHUTDOWN_AND_EXIT = ({"method": "shutdown", "id": "last"}, {"method": "exit"})
"""What clients send at the end if they do not wait for the answer to shutdown."""


@contextmanager
def client(capabilities: Any, state: Path, ids: Iterator[Any] | None = None, **said: Any) -> Iterator[Editor]:
    """An initialized client; checks that neither it nor standard error gets an error or a warning.

    `said` holds more parameters of initialize, and `answers` and `last` (messages to send instead of waiting for
    shutdown).
    """
    answers, last = said.pop("answers", {}), said.pop("last", ())
    stderr_path = state / "stderr"
    with (
        stderr_path.open("wb") as stderr,
        Editor(
            {"workspace/configuration": lambda _: [None]} | answers,
            ids=ids,
            stderr=stderr,
            env=os.environ | {"XDG_STATE_HOME": str(state)},
        ) as editor,
    ):
        editor.initialize(capabilities, said.pop("options", None), **said)
        editor.receive_all()
        yield editor
        assert editor.received("window/showMessage") == []
        assert {log["type"] for log in editor.received("window/logMessage")} <= {3}
        if last:
            editor.leave(*last)
    assert "Traceback" not in stderr_path.read_text("utf-8")


class Buffer:
    """A document with a cursor; every change is sent to the server as one notification."""

    def __init__(self, editor: Editor, text: str = LINE, language: str = "python"):
        self.text = text
        self.version = 1
        self.cursor = len(text)
        """In code points, like all offsets here."""
        self._editor = editor
        editor.open(URI, text, language)

    def __enter__(self) -> "Buffer":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if kind is None:
            assert self._editor.text(URI) == self.text

    @property
    def here(self) -> dict[str, Any]:
        """The document and the cursor, as request parameters."""
        return {"textDocument": {"uri": URI}, "position": self.position(self.cursor)}

    @property
    def line(self) -> str:
        """The text without the script."""
        return self.text.partition("\n")[2]

    def position(self, offset: int) -> dict[str, int]:
        """The LSP position of an offset, in UTF-16 units."""
        before = self.text[:offset]
        return {"line": before.count("\n"), "character": _units(before.rpartition("\n")[2])}

    def offset(self, position: dict[str, int]) -> int:
        """The offset of an LSP position that exists."""
        offset = sum(len(line) + 1 for line in self.text.split("\n")[: position["line"]])
        units = position["character"]
        while units > 0:
            units -= _units(self.text[offset])
            offset += 1
        assert units == 0
        return offset

    def region(self, span: dict[str, Any]) -> tuple[int, int]:
        """The offsets of a range."""
        return self.offset(span["start"]), self.offset(span["end"])

    def edit(self, *edits: tuple[int, int, str]) -> None:
        """Replace the text between two offsets, one edit after another; each counts as a version.

        The cursor goes behind the last edit.
        """
        changes = []
        for start, end, text in edits:
            span = {"start": self.position(start), "end": self.position(end)}
            changes.append({"range": span, "rangeLength": _units(self.text[start:end]), "text": text})
            self.text = self.text[:start] + text + self.text[end:]
            self.cursor = start + len(text)
        self.version += len(edits)
        self._editor.change(URI, self.version, *changes)

    def type(self, keys: str) -> None:
        """Type the keys, one notification each."""
        for key in keys:
            self.edit((self.cursor, self.cursor, key))

    def put(self, span: dict[str, Any], text: str) -> None:
        """Replace a range."""
        self.edit((*self.region(span), text))


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def outcome(state: Path, shown: int = 1) -> tuple[str, int]:
    """Outcome and saved characters of the first suggestion; checks that `shown` were counted."""
    rows = store.read(state / "mercury-lsp" / "statistics", 0)
    assert len(rows) == shown
    return rows[0].outcome, rows[0].saved


def dropped(editor: Editor, msg_id: Any) -> bool:
    """Whether a request that the client cancelled was refused as cancelled; it may have been answered before."""
    reply = editor.reply(msg_id)
    assert "result" in reply or reply["error"]["code"] == CANCELLED
    return "error" in reply
