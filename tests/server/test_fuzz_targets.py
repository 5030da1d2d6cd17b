"""A few of the bytes that the coverage-guided runs try by the million."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.fuzz_targets import TARGETS

PIECES = [
    b"Content-Length: ",
    b"9\r\n\r\n",
    b"\r\n",
    b'{"id":',
    b'"',
    b"\\u",
    b"d83d",
    b"\\",
    b"[[",
    b"]}",
    b"password = ",
    b"-----BEGIN ",
    b"a" * 40,
    "é😀".encode(),
]


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@settings(max_examples=60)
@given(data=st.binary(max_size=60) | st.lists(st.sampled_from(PIECES) | st.binary(max_size=4)).map(b"".join))
def test_any_bytes_are_survived(target: Callable[[bytes], None], data: bytes):
    target(data)
