"""A cheap copy of an open document as the client has it: edits are queued and applied in batches."""

from typing import Any

from mercury_lsp.documents.chunked_text import MAX_DOCUMENT_CHARS, ChunkedText

MAX_PENDING_CHANGES = 512
"""Most queued changes; further ones apply the queue."""

MAX_PENDING_CHARS = 2**20
"""Most inserted characters in queued changes."""


class Mirror:
    """One document, opened with an item of `textDocument/didOpen`."""

    def __init__(self, item: dict[str, Any]):
        self._item = {name: value for name, value in item.items() if name != "text"}
        if not isinstance(item["text"], str):
            raise TypeError("a document's text is a string")
        self._text: str | None = item["text"]
        """The text at opening; None once it is split into chunks, which is slow and needed for changes only."""
        self._source = ChunkedText.of("")
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
        return self._item | {"text": "".join(self._source.chunks) if self._text is None else self._text}

    def _apply(self) -> None:
        if self._text is not None and len(self._text) > MAX_DOCUMENT_CHARS:
            wholes = [number for number, each in enumerate(self._pending) if not each.get("range")]
            self._pending = self._pending[wholes[0] :] if wholes else []  # the server applies no part of it either
        if self._pending and self._text is not None:
            self._source, self._text = ChunkedText.of(self._text if self._pending[0].get("range") else ""), None
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
