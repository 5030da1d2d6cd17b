"""What the replays of clients share: how one is started, the document as it has it, and what became of a suggestion."""

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
"""The last words of clients that do not wait for the answer."""


@contextmanager
def client(capabilities: Any, state: Path, ids: Iterator[Any] | None = None, **said: Any) -> Iterator[Editor]:
    """A client that has introduced itself; it hears of no error and no warning, nor does standard error.

    `answers` and `last` (what it says instead of waiting for shutdown) are not part of what is said.
    """
    answers, last = said.pop("answers", {}), said.pop("last", ())
    told = state / "stderr"
    with (
        told.open("wb") as stderr,
        Editor(
            {"workspace/configuration": lambda _: [None]} | answers,
            ids=ids,
            stderr=stderr,
            env=os.environ | {"XDG_STATE_HOME": str(state)},
        ) as editor,
    ):
        editor.initialize(capabilities, said.pop("options", None), **said)
        editor.settle()
        yield editor
        assert editor.told("window/showMessage") == []
        assert {log["type"] for log in editor.told("window/logMessage")} <= {3}
        if last:
            editor.leave(*last)
    assert "Traceback" not in told.read_text("utf-8")


class Buffer:
    """A document with a cursor. What is changed in it is told to the server, as one notification each time."""

    def __init__(self, editor: Editor, text: str = LINE, language: str = "python"):
        self.text = text
        self.version = 1
        self.cursor = len(text)
        """In code points, as all offsets are."""
        self._editor = editor
        editor.open(URI, text, language)

    def __enter__(self) -> "Buffer":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if kind is None:
            assert self._editor.text(URI) == self.text

    @property
    def here(self) -> dict[str, Any]:
        """The document and the cursor, as requests name them."""
        return {"textDocument": {"uri": URI}, "position": self.position(self.cursor)}

    @property
    def line(self) -> str:
        """All but the script."""
        return self.text.partition("\n")[2]

    def position(self, offset: int) -> dict[str, int]:
        """In UTF-16."""
        before = self.text[:offset]
        return {"line": before.count("\n"), "character": _units(before.rpartition("\n")[2])}

    def offset(self, position: dict[str, int]) -> int:
        """Of a position in UTF-16 that exists."""
        offset = sum(len(line) + 1 for line in self.text.split("\n")[: position["line"]])
        units = position["character"]
        while units > 0:
            units -= _units(self.text[offset])
            offset += 1
        assert units == 0
        return offset

    def region(self, span: dict[str, Any]) -> tuple[int, int]:
        """Offsets of a range."""
        return self.offset(span["start"]), self.offset(span["end"])

    def edit(self, *edits: tuple[int, int, str]) -> None:
        """Each replaces what stands between two offsets once those before it are done, and counts as one version.

        The cursor goes behind the last.
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
        """One by one."""
        for key in keys:
            self.edit((self.cursor, self.cursor, key))

    def put(self, span: dict[str, Any], text: str) -> None:
        """Replace a range."""
        self.edit((*self.region(span), text))


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def outcome(state: Path, shown: int = 1) -> tuple[str, int, int, int]:
    """Of the first of so many suggestions that were counted: what became of it, typed, saved and kept."""
    rows = store.read(state / "mercury-lsp" / "statistics.sqlite", 0)
    assert len(rows) == shown
    return rows[0].outcome, rows[0].typed, rows[0].saved, rows[0].kept


def dropped(editor: Editor, msg_id: Any) -> bool:
    """Whether a request that its client has given up was refused as cancelled; it may have been answered before."""
    reply = editor.reply(msg_id)
    assert "result" in reply or reply["error"]["code"] == CANCELLED
    return "error" in reply
