"""A cheap copy of an open document as the client has it: edits are queued and applied in batches."""

from typing import Any

from mercury_lsp.documents.chunked_text import MAX_DOCUMENT_CHARS, ChunkedText

MAX_PENDING_CHANGES = 512
"""Most queued changes; further ones apply the queue."""

MAX_PENDING_CHARS = 2**11
"""Most inserted characters in a queued change; a longer one applies the queue."""

_ENDS = ("start", "end")


class Mirror:
    """One document, opened with an item of `textDocument/didOpen`."""

    def __init__(self, item: dict[str, Any]):
        if not isinstance(item["text"], str):
            raise TypeError("a document's text is a string")
        self._item = item
        """With the text last sent as a whole."""
        self._source: ChunkedText | None = None
        """The text after changes; None before the first, because splitting a text into chunks is slow."""
        self._pending: list[dict[str, Any]] = []

    def change(self, version: Any, changes: list[dict[str, Any]]) -> None:
        """Queue content changes: all of them, or none if one or the version is malformed, as the server does."""
        if type(version) is not int or not all(map(_is_sound, changes)):
            return
        self._item = self._item | {"version": version}
        for each in changes:
            if each.get("range"):
                self._pending.append(each)
            else:
                self._item["text"], self._source, self._pending = each["text"], None, []
        is_long = any(len(each["text"]) > MAX_PENDING_CHARS for each in changes)
        if len(self._pending) > MAX_PENDING_CHANGES or is_long:
            self._apply()

    def item(self) -> dict[str, Any]:
        """The item that opens the document in its current state."""
        self._apply()
        return self._item if self._source is None else self._item | {"text": "".join(self._source.chunks)}

    def _apply(self) -> None:
        if self._source is None and len(self._item["text"]) > MAX_DOCUMENT_CHARS:
            self._pending = []  # the server applies no part of a document that long either
        for each in self._pending:
            source = ChunkedText.of(self._item["text"]) if self._source is None else self._source
            ends = [source.offset_at(each["range"][end]["line"], each["range"][end]["character"]) for end in _ENDS]
            start, end = min(ends), max(ends)
            self._source = source.replace(start, end, each["text"]) if start != end or each["text"] else source
        self._pending = []


def _is_sound(change: Any) -> bool:
    if not isinstance(change, dict) or not isinstance(change.get("text"), str):
        return False
    span = change.get("range")
    return span is None or (isinstance(span, dict) and all(_is_position(span.get(end)) for end in _ENDS))


def _is_position(position: Any) -> bool:
    return isinstance(position, dict) and all(
        type(position.get(axis)) is int and position[axis] >= 0 for axis in ("line", "character")
    )
