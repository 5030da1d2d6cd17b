"""Splits a byte stream into JSON-RPC messages; resumes at the next header after an unreadable frame.

Every byte is searched a bounded number of times, even with nested headers: a body that contains a header is unreadable
as soon as that header arrives, because a well-formed message cannot contain one.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

READ_BYTES = 65536
"""To read from a stream at a time."""

MAX_BODY_BYTES = 256 * 2**20
"""Longest message; a larger Content-Length means a damaged header."""

MAX_HEADER_BYTES = 8192
"""Longest header; more bytes without a blank line are not a header."""

MAX_NESTING = 128
"""Most levels of lists and objects in a message. Python decodes nearly 1,000 but can then neither print nor convert
them; editors nest fewer than 20."""

MAX_LENGTH_LINE_BYTES = 64
"""Longest line with a length; it may arrive in two pieces."""

_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
# A line break cannot stand inside a JSON string, so this never matches in a well-formed message.
_LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*(\d{1,18})[ \t]*(?=\r?\n)", re.IGNORECASE)

PARSE_ERROR = -32700


class Unreadable(NamedTuple):
    """Bytes that are not a message, or a message that is nested too deep."""

    reason: str


class MessageDecoder:
    """Decodes messages from bytes that arrive in pieces of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._length: int | None = None
        """Length of the awaited body; None while a header is awaited."""
        self._searched = 0
        """Bytes of the awaited body that contain no header."""

    def feed(self, data: bytes) -> Iterator[Any]:
        """Every message that is now complete, as decoded JSON, or `Unreadable` in place of a broken one."""
        self._buffer += data
        while True:
            if self._length is None:
                broken = self._take_header()
                if broken is not None:
                    yield broken
                elif self._length is None:
                    return
            elif (header := self._header_in_body(self._length)) is not None:
                self._drop(header)
                yield Unreadable("a message begins inside another one: its Content-Length was wrong")
            elif len(self._buffer) < self._length:
                return
            else:
                message, used = _decoded(bytes(self._buffer[: self._length]))
                self._drop(used)
                yield message

    def _drop(self, size: int) -> None:
        """Remove the beginning of the buffer; a header is awaited next."""
        del self._buffer[:size]
        self._length, self._searched = None, 0

    def _header_in_body(self, length: int) -> int | None:
        """The position of a header in the body received so far."""
        end = min(length, len(self._buffer))
        start = max(0, self._searched - MAX_LENGTH_LINE_BYTES)
        self._searched = end
        if self._buffer.find(b"\n", start, end) < 0:  # a search for one byte is a hundred times faster
            return None
        found = _LENGTH.search(self._buffer, start, end)
        return found.start() if found is not None else None

    def _take_header(self) -> Unreadable | None:
        """Set the length if a header is complete; returns what is wrong with the header, or None."""
        found = _BLANK_LINE.search(self._buffer)
        if found is None:
            if len(self._buffer) <= MAX_HEADER_BYTES:
                return None
            del self._buffer[: -len("Content-Length: ") - 20]
            return Unreadable(f"no header within {MAX_HEADER_BYTES} bytes")
        lengths = _LENGTH.findall(self._buffer[: found.end()])
        del self._buffer[: found.end()]
        if not lengths or int(lengths[-1]) > MAX_BODY_BYTES:
            return Unreadable(f"a header without a Content-Length from 0 to {MAX_BODY_BYTES}")
        self._length = int(lengths[-1])  # the last one: bytes left over by a wrong length may precede it
        return None


def messages(read: Callable[[], bytes]) -> Iterator[Any]:
    """Every message of a stream, or `Unreadable` in place of a broken one; `read` returns b"" at the end."""
    decoder = MessageDecoder()
    while data := read():
        yield from decoder.feed(data)


def framed(message: Any) -> bytes:
    body = json.dumps(message, separators=(",", ":")).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _decoded(body: bytes) -> tuple[Any, int]:
    """The message and the number of bytes used; too large a length swallows part of the next header.

    Neovim sends a buffer's invalid UTF-8 unchanged. Each such byte becomes a code unit, as Neovim counts them, so that
    later changes go to the right places.
    """
    try:
        message = json.loads(body.decode("utf-8", "surrogateescape"))
    except json.JSONDecodeError as error:
        before = error.doc[: error.pos].encode("utf-8", "surrogateescape")
        used = len(before) if error.msg == "Extra data" else len(body)
        return Unreadable(f"not JSON: {error}"), used
    except (ValueError, RecursionError) as error:
        return Unreadable(f"not JSON: {error}"), len(body)
    many = body.count(b"[") + body.count(b"{") > MAX_NESTING
    return (_too_deep(message) if many and _levels(message) > MAX_NESTING else message), len(body)


def _levels(message: Any) -> int:
    """Levels of lists and objects; counting ends beyond the limit."""
    level, count = [message], 0
    while level and count <= MAX_NESTING:
        level = [each for each in level if isinstance(each, dict | list)]
        count += bool(level)
        level = [child for each in level for child in (each.values() if isinstance(each, dict) else each)]
    return count


def _too_deep(message: Any) -> Any:
    """The replacement of a message that is nested too deep; an answer becomes an error, so that nobody waits for it."""
    reason = f"a message with more than {MAX_NESTING} levels of lists and objects"
    if isinstance(message, dict) and "method" not in message and isinstance(message.get("id"), int | str):
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": PARSE_ERROR, "message": reason}}
    return Unreadable(reason)
