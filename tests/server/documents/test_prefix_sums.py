"""Sums that follow single changes equal those summed again."""

from bisect import bisect_left, bisect_right
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from mercury_lsp.documents.prefix_sums import PrefixSums

NUMBERS = st.lists(st.integers(0, 5), min_size=1, max_size=12)


@given(NUMBERS, st.lists(st.tuples(st.integers(0, 11), st.integers(0, 5)), max_size=8), st.integers(-1, 70))
def test_changed_sums_and_searches_in_them_equal_those_of_a_plain_list(numbers, changes, value):
    sums = PrefixSums.of(numbers)
    for at, number in changes:
        at %= len(numbers)
        before, sums = sums, sums.with_change(at, number - numbers[at])
        assert list(before) == list(accumulate(numbers, initial=0)), "the sums before a change stay as they were"
        numbers = [*numbers[:at], number, *numbers[at + 1 :]]
    plain = list(accumulate(numbers, initial=0))
    assert list(sums) == plain and len(sums) == len(plain)
    assert [sums[index] for index in range(-len(plain), len(plain))] == plain + plain
    assert sums.bisect_left(value) == bisect_left(plain, value)
    assert sums.bisect_right(value) == bisect_right(plain, value)
