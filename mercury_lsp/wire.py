"""Cuts a byte stream into JSON-RPC messages; behind a frame that cannot be read it goes on at the next header."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

MAX_BODY = 256 * 2**20
"""Bytes of one message; more is taken for a damaged header."""

MAX_HEADER = 8192
"""Bytes without a blank line after which they are no header."""

_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
# A line break cannot stand inside a JSON string, so this never matches in the text of a well-formed message.
_LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*(\d{1,18})[ \t]*(?=\r?\n)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Bytes that are no message."""

    reason: str


def messages(read: Callable[[], bytes]) -> Iterator[Any]:
    """Every message as decoded JSON, and `Unreadable` for what stands in its place; read gives b"" at the end."""
    buffer = bytearray()
    while (header := _header_end(buffer, read)) is not None:
        if not header:
            yield Unreadable(f"no header within {MAX_HEADER} bytes")
            del buffer[: -len("Content-Length: ") - 20]
            continue
        length = _length(bytes(buffer[:header]))
        del buffer[:header]
        if length is None:
            yield Unreadable(f"a header without a Content-Length from 0 to {MAX_BODY}")
            continue
        if not _fill(buffer, length, read):
            return
        message, used = _decoded(bytes(buffer[:length]))
        del buffer[:used]
        yield message


def _header_end(buffer: bytearray, read: Callable[[], bytes]) -> int | None:
    """Where the body starts; 0 if no header is in sight, None at the end of the stream."""
    while (found := _BLANK_LINE.search(buffer)) is None:
        if len(buffer) > MAX_HEADER:
            return 0
        if not _fill(buffer, len(buffer) + 1, read):
            return None
    return found.end()


def _fill(buffer: bytearray, size: int, read: Callable[[], bytes]) -> bool:
    """Read until the buffer has so many bytes; False if the stream ends before."""
    while len(buffer) < size:
        if not (chunk := read()):
            return False
        buffer += chunk
    return True


def _length(header: bytes) -> int | None:
    """The last length that a header tells: before it may stand what a wrong length left over."""
    found = _LENGTH.findall(header)
    return int(found[-1]) if found and int(found[-1]) <= MAX_BODY else None


def _decoded(body: bytes) -> tuple[Any, int]:
    """The message and the bytes that are done with; a length that was too large took in the header that follows."""
    try:
        return json.loads(body.decode("utf-8")), len(body)
    except (ValueError, RecursionError) as error:
        used = len(body)
        if found := _LENGTH.search(body):
            used = found.start()
        elif isinstance(error, json.JSONDecodeError) and error.msg == "Extra data":
            used = len(error.doc[: error.pos].encode())
        return Unreadable(f"not JSON in UTF-8: {error}"), used
