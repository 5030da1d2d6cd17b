"""A bounded store drops what was unused for longest."""

from hypothesis import given
from hypothesis import strategies as st
from mercury_engine.lru import LeastRecentlyUsed


def test_the_entry_unused_for_longest_is_dropped():
    store = LeastRecentlyUsed[str, int](2)
    store.put("a", 1)
    store.put("b", 2)
    assert store.get("a") == 1
    store.put("c", 3)
    assert (list(store), store.values()) == (["a", "c"], [1, 3])
    assert store.get("b") is None and "b" not in store


@given(st.lists(st.tuples(st.sampled_from(["put", "get", "pop"]), st.sampled_from("abcd"), st.text(max_size=4))))
def test_the_total_is_the_sum_of_the_sizes_and_within_the_limit(steps):
    store = LeastRecentlyUsed[str, str](6, len)
    for step, key, value in steps:
        if step == "put":
            store.put(key, value)
        elif step == "get":
            store.get(key)
        else:
            store.pop(key)
        assert store.total == sum(map(len, store.values()))
        assert store.total <= 6 or len(store) == 1
    store.clear()
    assert (len(store), store.total) == (0, 0)
