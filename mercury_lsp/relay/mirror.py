"""An open document as the client has it, kept cheaply: edits are queued, and applied once there are many."""

from typing import Any

from mercury_lsp.documents.chunked_text import ChunkedText

MAX_PENDING_CHANGES = 512
"""Queued changes before they are applied."""

MAX_PENDING_CHARS = 2**20
"""Inserted characters in queued changes before they are applied."""


class Mirror:
    """One document, opened with an item of `textDocument/didOpen`."""

    def __init__(self, item: dict[str, Any]):
        self._item = {name: value for name, value in item.items() if name != "text"}
        self._source = ChunkedText.of(item["text"])
        self._pending: list[dict[str, Any]] = []
        self._chars = 0

    def change(self, version: Any, changes: list[dict[str, Any]]) -> None:
        """Queue content changes: all of them, or none if one is malformed, as the server does."""
        if not all(map(_is_sound, changes)):
            return
        self._item["version"] = version
        for each in changes:
            self._pending.append(each)
            self._chars += len(each["text"])
        if len(self._pending) > MAX_PENDING_CHANGES or self._chars > MAX_PENDING_CHARS:
            self._apply()

    def item(self) -> dict[str, Any]:
        """The item that opens the document in its current state."""
        self._apply()
        return self._item | {"text": "".join(self._source.chunks)}

    def _apply(self) -> None:
        for each in self._pending:
            if span := each.get("range"):
                ends = [self._source.offset_at(at["line"], at["character"]) for at in (span["start"], span["end"])]
                self._replace(min(ends), max(ends), each["text"])
            else:
                self._replace(*self._source.difference(each["text"]))
        self._pending, self._chars = [], 0

    def _replace(self, start: int, end: int, text: str) -> None:
        if start != end or text:
            self._source = self._source.replace(start, end, text)


def _is_sound(change: Any) -> bool:
    if not isinstance(change, dict) or not isinstance(change.get("text"), str):
        return False
    span = change.get("range")
    return span is None or (isinstance(span, dict) and all(_is_position(span.get(end)) for end in ("start", "end")))


def _is_position(position: Any) -> bool:
    return isinstance(position, dict) and all(
        type(position.get(axis)) is int and position[axis] >= 0 for axis in ("line", "character")
    )
