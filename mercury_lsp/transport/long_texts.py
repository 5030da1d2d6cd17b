"""Decodes and encodes messages with long texts in slices, between which other threads and tasks can run.

Python's JSON decodes a message in one step, which takes 4 to 8 ms per MB; a document may have tens of them.
"""

import json
import os
import re
from collections.abc import Generator, Iterator
from typing import Any, Final

SLICE_BYTES = 2**18
"""Bytes, or characters, that one step decodes or encodes; about 2 ms."""

MAX_TEXT_CHARS = 12_000_001
"""Longest text in a message; the rest is dropped, because no document this long is served."""

MAX_OTHER_BYTES = 8 * 2**20
"""Most bytes of a message beside its long texts, which are decoded in one step."""

_WITHIN = re.compile(
    rb'(?:[^"\\]++|\\[^u]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}|\\u[0-9a-fA-F]{4})*+', re.DOTALL
)
"""What may stand within a string, up to its closing quote or an escape that is not complete."""

_COLON = re.compile(rb"[ \t\r\n]*:")

_HALF_OF_PAIR = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")


PAUSE: Final = object()
"""Stands between the slices of a message: others may be served now."""


class Malformed(ValueError):
    """The body is not JSON; the ordinary decoder can say why."""


class TooLong(ValueError):
    """Too much of the body is no long text."""


def decoded(body: bytes | bytearray, length: int) -> Generator[object, None, Any]:
    """The message in the first `length` bytes, one slice a step. Raises Malformed, TooLong, ValueError, RecursionError.

    The skeleton of the message has names in place of the long texts.
    """
    mark, texts, skeleton = os.urandom(16).hex(), list[str](), bytearray()
    at = rested = 0
    while at < length:
        start = body.find(b'"', at, length)
        if start < 0:
            skeleton += body[at:length]
            break
        end = _slice_end(body, start + 1, length)
        if body[end : end + 1] == b'"':
            skeleton += body[at : end + 1]
        else:
            text, end = yield from _text(body, start + 1, end, length)
            if _COLON.match(body, end + 1):  # a key
                skeleton += body[at : end + 1]
            else:
                skeleton += body[at:start] + f'"{mark}{len(texts)}"'.encode()
                texts.append(text)
        at = end + 1
        if at - rested > SLICE_BYTES:
            rested = at
            if len(skeleton) > MAX_OTHER_BYTES:
                raise TooLong(f"a message with more than {MAX_OTHER_BYTES >> 20} MB beside its long texts")
            yield PAUSE
    message = [json.loads(skeleton.decode())]
    named = {f"{mark}{number}": text for number, text in enumerate(texts)}
    for container, key, value in _strings(message):
        if value in named:
            container[key] = named[value]
    return message[0]


def _text(body: bytes | bytearray, start: int, end: int, length: int) -> Generator[object, None, tuple[str, int]]:
    """A long string, whose first slice ends at `end`; returns it and where its closing quote is."""
    pieces, chars = list[str](), 0
    while True:
        if chars < MAX_TEXT_CHARS:
            pieces.append(json.loads(f'"{body[start:end].decode()}"')[: MAX_TEXT_CHARS - chars])
            chars += len(pieces[-1])
        if body[end : end + 1] == b'"':
            return "".join(pieces), end
        yield PAUSE
        start, end = end, _slice_end(body, end, length)


def _slice_end(body: bytes | bytearray, start: int, length: int) -> int:
    """Where a slice of a string ends: at its closing quote, or where neither a character nor an escape is cut."""
    found = _WITHIN.match(body, start, min(length, start + SLICE_BYTES))
    assert found is not None  # it may be empty
    end = found.end()
    if end < length and body[end] == ord('"'):
        return end
    while end > start and end < length and body[end] & 0xC0 == 0x80:
        end -= 1
    if _HALF_OF_PAIR.search(body, max(start, end - 6), end):
        end -= 6
    if end <= start or end >= length:
        raise Malformed("a string does not end")
    return end


def encoded(value: Any) -> bytes:
    """A value as compact JSON, its long texts in slices."""
    mark, texts = os.urandom(16).hex(), list[str]()
    skeleton = json.dumps(_without_texts(value, mark, texts), separators=(",", ":")).encode()
    pieces, at = [], 0
    for number, text in enumerate(texts):
        name = f'"{mark}{number}"'.encode()
        found = skeleton.index(name, at)
        pieces += [skeleton[at:found], b'"', *map(_escaped, _slices(text)), b'"']
        at = found + len(name)
    return b"".join([*pieces, skeleton[at:]])


def _without_texts(value: Any, mark: str, texts: list[str]) -> Any:
    """A copy with a name in place of each long text; the texts are added to the list."""
    if isinstance(value, str) and len(value) > SLICE_BYTES:
        texts.append(value)
        return f"{mark}{len(texts) - 1}"
    if isinstance(value, dict):
        return {key: _without_texts(each, mark, texts) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_texts(each, mark, texts) for each in value]
    return value


def _slices(text: str) -> Iterator[str]:
    for start in range(0, len(text), SLICE_BYTES):
        yield text[start : start + SLICE_BYTES]


def _escaped(text: str) -> bytes:
    return json.dumps(text)[1:-1].encode()


def _strings(message: Any) -> Iterator[tuple[Any, Any, str]]:
    """Every string in lists and objects: its container, its key there, and itself."""
    left = [message]
    while left:
        container = left.pop()
        for key, value in container.items() if isinstance(container, dict) else enumerate(container):
            if isinstance(value, str):
                yield container, key, value
            elif isinstance(value, dict | list):
                left.append(value)
