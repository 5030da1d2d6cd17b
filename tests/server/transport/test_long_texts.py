"""Messages with long texts are what they are in one step, in steps of a limited length."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercury_lsp.documents.chunked_text import MAX_DOCUMENT_CHARS
from mercury_lsp.transport import framing, long_texts
from mercury_lsp.transport.framing import MessageDecoder, Unreadable
from mercury_lsp.transport.long_texts import MAX_TEXT_CHARS, PAUSE, Malformed
from tests.server.transport.test_framing import nested
from tests.support.editor import frame

LETTERS = st.sampled_from(["a", "é", "中", "😀", '"', "\\", "\n", "\0", "\ud83d", "\ude00", "u", "d83d", "/"])
texts = st.lists(LETTERS, max_size=60).map("".join)
values = st.recursive(
    st.one_of(texts, st.integers(), st.none()),
    lambda v: st.lists(v, max_size=4) | st.dictionaries(texts, v, max_size=4),
)


@pytest.fixture
def small_slices() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_texts, "SLICE_BYTES", 14)  # longer than a pair of escapes
        patch.setattr(framing, "LARGE_BYTES", 0)
        yield


def decoded(body: bytes, length: int | None = None) -> Any:
    steps = long_texts.decoded(body, len(body) if length is None else length)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


def read(data: bytes) -> tuple[list[Any], int]:
    """The messages, and the number of pauses between their slices."""
    found = list(MessageDecoder().feed_in_slices(data))
    return [each for each in found if each is not PAUSE], found.count(PAUSE)


@pytest.mark.usefixtures("small_slices")
@given(value=values, is_ascii=st.booleans(), more=st.binary(max_size=9))
def test_what_is_decoded_in_slices_is_what_is_decoded_in_one_step(value: Any, is_ascii: bool, more: bytes):
    value = {"value": value}
    body = json.dumps(value, ensure_ascii=is_ascii).encode("utf-8", "replace")
    assert decoded(body + more, len(body)) == json.loads(body)


@pytest.mark.usefixtures("small_slices")
@given(values)
def test_what_is_encoded_in_slices_is_what_is_encoded_in_one_step(value: Any):
    assert long_texts.encoded(value) == json.dumps(value, separators=(",", ":")).encode()


@pytest.mark.usefixtures("small_slices")
@given(
    st.binary(max_size=80)
    | st.lists(st.sampled_from([b'"', b"\\", b"\\u", b"d83d", b"{", b"\xe4\xb8\xad", b"a" * 20])).map(b"".join)
)
def test_what_is_not_json_is_refused_in_slices_too(body: bytes):
    try:
        expected = json.loads(body.decode())
    except ValueError:
        with pytest.raises(ValueError):
            decoded(body)
    else:
        if expected == expected:  # no NaN
            assert decoded(body) == expected


@pytest.mark.usefixtures("small_slices")
@pytest.mark.parametrize("end", ["", "\\", "\\u12", "\\ud83d", "\\ud83d\\ude0", "é"])
def test_a_text_that_does_not_end_is_malformed(end: str):
    with pytest.raises(Malformed):
        decoded(('["' + "a" * 40 + end).encode())


@pytest.mark.parametrize("is_ascii", [True, False])
def test_a_large_message_is_decoded_in_steps_of_a_slice(is_ascii: bool):
    text = 'é😀 "x"\n' * 400_000
    message = {"id": 1, "params": {"textDocument": {"text": text}}, "after": ["it", text]}
    body = json.dumps(message, ensure_ascii=is_ascii).encode()
    [first, second], pauses = read(b"Content-Length: %d\r\n\r\n%b%b" % (len(body), body, frame({"id": 2})))
    assert (first, second) == (message, {"id": 2})
    assert pauses >= len(body) // long_texts.SLICE_BYTES - 2
    compact = json.dumps(message, separators=(",", ":")).encode()
    assert framing.framed(message) == b"Content-Length: %d\r\n\r\n%b" % (len(compact), compact)


def test_a_text_beyond_what_is_served_is_read_and_cut():
    assert MAX_TEXT_CHARS > MAX_DOCUMENT_CHARS  # so that its document is left alone
    sent = {"method": "x", "text": "é" * (MAX_TEXT_CHARS + 5_000_000), "then": 1}
    [first, second], _ = read(frame(sent) + frame({"id": 2}))
    assert first == sent | {"text": "é" * MAX_TEXT_CHARS} and second == {"id": 2}


def test_a_message_that_is_large_without_long_texts_is_refused():
    [refused, second], _ = read(frame({"id": 1, "list": ["x" * 99] * 90_000}) + frame({"id": 2}))
    assert isinstance(refused, Unreadable) and "8 MB beside" in refused.reason and second == {"id": 2}


@pytest.mark.usefixtures("small_slices")
def test_a_message_nested_too_deep_costs_itself_only_in_slices_too():
    [refused, second], _ = read(nested(200_000) + frame({"id": 2}))
    assert isinstance(refused, Unreadable) and second == {"id": 2}
