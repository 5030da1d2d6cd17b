"""Pages are handed out once and keep their contents; captured work counts apart."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mercury_kernels.capture import Captures
from mercury_kernels.counters import counters
from mercury_kernels.pages import PagePool


def pool(pages=9):
    return PagePool(2, 3, 8, pages, torch.float32, torch.device("cpu"), 16)


@given(st.lists(st.integers(0, 4), max_size=12))
def test_no_page_is_handed_out_twice_and_no_page_is_lost(wanted):
    made, held = pool(), []
    for count in wanted:
        if count and count <= made.free:
            held.append(made.take(count))
        elif held:
            made.give(held.pop(0))
        used = [page for run in held for page in run]
        assert len(set(used)) == len(used) == 8 - made.free
        assert 0 not in used


@pytest.mark.parametrize("tokens", [1, 15, 16, 17, 40])
def test_pages_hold_keys_and_values_in_order(tokens):
    made = pool()
    keys, values = torch.randn(2, 3, tokens, 8), torch.randn(2, 3, tokens, 8)
    pages = made.take(made.needed(tokens))[::-1]
    made.put(pages, 0, keys, values)
    counts = made.counts(tokens)
    assert sum(counts) == tokens
    for stored, given_ in ((made.keys, keys), (made.values, values)):
        parts = [stored[:, page, :, :count] for page, count in zip(pages, counts, strict=True)]
        assert torch.equal(torch.cat(parts, 2), given_)
    assert not made.keys[:, 0].any()


def test_graphs_of_two_engines_count_apart_so_that_both_may_run_at_once():
    device, seen = torch.device("cpu"), {}
    first, second = Captures(device), Captures(device)
    for name, made in (("first", first), ("second", second)):
        made.prepare("work", lambda name=name: seen.setdefault(name, set()).add(counters(device).data_ptr()))
    for made in (first, second, first):
        made.run("work")
    assert len(seen["first"]) == len(seen["second"]) == 1
    assert len(seen["first"] | seen["second"] | {counters(device).data_ptr()}) == 3
