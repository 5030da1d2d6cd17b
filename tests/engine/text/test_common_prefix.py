"""Both ways to find a common prefix agree."""

from hypothesis import given
from hypothesis import strategies as st
from mercury_engine.text.common_prefix import common_prefix, common_text_prefix

TEXT = st.text(alphabet="ab", max_size=12)


@given(TEXT, TEXT, st.integers(0, 12))
def test_bisection_finds_the_same_prefix_as_comparing_one_by_one(left, right, limit):
    limit = min(limit, len(left), len(right))
    assert common_text_prefix(left, right, limit) == min(limit, common_prefix(left, right))


@given(TEXT, TEXT)
def test_the_prefix_is_common_and_cannot_be_longer(left, right):
    size = common_prefix(left, right)
    assert left[:size] == right[:size]
    assert left[size : size + 1] != right[size : size + 1] or size == len(left) == len(right)
