"""Framing: whatever comes between two messages, the second one is read."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercury_lsp.transport import framing
from mercury_lsp.transport.framing import MAX_BODY_BYTES, MAX_HEADER_BYTES, MAX_NESTING, Unreadable, messages
from tests.support.editor import frame

FIRST, SECOND = {"id": 1, "text": "Content-Length: 7\r\n\r\n{}"}, {"id": 2, "text": "😀\ud800"}


def read(data: bytes, sizes: Any = None) -> list[Any]:
    """Everything that is read when the data arrives in pieces of these sizes."""
    at = 0

    def piece() -> bytes:
        nonlocal at
        size = next(sizes) if sizes else len(data)
        taken = data[at : at + size]
        at += size
        return taken

    return list(messages(piece))


def read_well(data: bytes) -> list[Any]:
    return [message for message in read(data) if not isinstance(message, Unreadable)]


@given(st.lists(st.integers(1, 60)), st.lists(st.dictionaries(st.text(), st.text())))
def test_messages_are_the_same_however_the_bytes_are_split(sizes: list[int], sent: list[dict[str, str]]):
    data = b"".join(map(frame, sent))
    pieces = iter([*sizes, *[7] * len(data), len(data)])
    assert read(data, pieces) == sent


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: %d\r\n\r\n",
        b"content-length:%d\r\n\r\n",
        b"CONTENT-LENGTH :  %d \r\nX: y\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: %d\r\n\r\n",
        b"Content-Length: %d\n\n",
    ],
)
def test_a_header_may_be_written_in_many_ways(header: bytes):
    body = json.dumps(FIRST).encode()
    assert read(header % len(body) + body + frame(SECOND)) == [FIRST, SECOND]


@pytest.mark.parametrize(
    "broken",
    [
        b"hello\r\n\r\n",
        b"\r\n\r\n\r\n\r\n",
        b"Content-Length: many\r\n\r\n{}",
        b"Content-Length: -5\r\n\r\n{}",
        b"Content-Length: \r\n\r\n{}",
        b"Content-Length: 0\r\n\r\n",
        b"Content-Length: %d\r\n\r\n{}" % (MAX_BODY_BYTES + 1),
        b"Content-Length: 99999999999999999999999\r\n\r\n{}",
        b"Content-Length: 5\r\n\r\n" + json.dumps(FIRST).encode(),
        b"Content-Length: 2\r\n\r\n\xff\xfe",
        b'Content-Length: 9\r\n\r\n{"a": nul',
        b"Content-Length: 200000\r\n\r\n" + b"[" * 200000,
        b"Content-Length: 5000\r\n\r\n" + b"1" * 5000,
        b"x" * (3 * MAX_HEADER_BYTES),
        b"Transfer-Encoding: chunked\r\n\r\n",
    ],
    ids=lambda broken: repr(broken[:30]),
)
def test_after_a_broken_frame_the_next_message_is_read(broken: bytes):
    assert read_well(broken + frame(SECOND)) == [SECOND]


def test_endless_noise_is_reported_and_not_kept():
    noise = b"x" * (3 * MAX_HEADER_BYTES)
    messages = read(noise + frame(SECOND), iter([1000] * 100))
    assert messages[-1] == SECOND and 1 <= len(messages[:-1]) <= 3
    assert all("no header" in each.reason for each in messages[:-1])


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (b'Content-Length: 9\r\n\r\n{"a": nul', "JSON"),
        (b"Content-Type: x\r\n\r\n", "Content-Length"),
    ],
)
def test_an_unreadable_frame_says_what_is_wrong(broken: bytes, reason: str):
    [unreadable] = read(broken)
    assert isinstance(unreadable, Unreadable) and reason in unreadable.reason


@pytest.mark.parametrize("change", [-3, -1, 1, 10, 40])
def test_a_length_that_is_wrong_costs_one_message_at_most(change: int):
    body = json.dumps(FIRST).encode()
    data = b"Content-Length: %d\r\n\r\n%b" % (len(body) + change, body)
    assert read_well(data + frame(SECOND)) == [SECOND]


@given(st.binary(max_size=300))
def test_any_bytes_at_all_are_survived(noise: bytes):
    assert read_well(noise + b"\r\n\r\n" + frame(FIRST) + frame(SECOND))[-1:] == [SECOND]


# A message that announces more than it has


def test_headers_within_headers_are_each_searched_once(monkeypatch: pytest.MonkeyPatch):
    searched: list[int] = []

    class Counted:
        def search(self, data: bytearray, start: int, end: int) -> Any:
            found = framing_length.search(data, start, end)
            searched.append((found.end() if found else end) - start)
            return found

        def findall(self, data: bytes) -> Any:
            return framing_length.findall(data)

    framing_length = framing._LENGTH
    monkeypatch.setattr(framing, "_LENGTH", Counted())
    count = 20_000
    nested = b"".join(b"Content-Length: %d\r\n\r\n{" % (40 * (count - number)) for number in range(count))
    found = read(nested + frame(SECOND), iter([65536] * 100))
    assert found[-1] == SECOND and sum(searched) < 10 * len(nested)


# Nesting


def nested(levels: int, **message: Any) -> bytes:
    """A message whose result is a list in lists; the message itself is one level."""
    marked = json.dumps({**message, "result": "here"})
    body = marked.replace('"here"', "[" * (levels - 1) + "]" * (levels - 1)).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@pytest.mark.parametrize("levels", [MAX_NESTING + 1, 900])
def test_an_answer_that_is_nested_too_deep_becomes_an_error(levels: int):
    [error, second] = read(nested(levels, id=7) + frame(SECOND))
    assert (error["id"], error["error"]["code"], second) == (7, -32700, SECOND)


@pytest.mark.parametrize("levels", [MAX_NESTING + 1, *range(960, 1010), 200_000])
def test_what_is_nested_too_deep_and_is_no_answer_is_unreadable(levels: int):
    [unreadable, second] = read(nested(levels, method="x") + frame(SECOND))
    assert isinstance(unreadable, Unreadable) and second == SECOND
