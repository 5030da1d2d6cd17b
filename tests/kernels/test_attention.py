"""Attention over a buffer of keys equals its twin and attention over segments, however the keys are split."""

import pytest
import torch
from mercury_kernels import attention, reference
from mercury_kernels.operands import Visibility

from tests.support.close import close, randn

DTYPES = [torch.float32, torch.bfloat16]
SHAPES = [  # rows, key heads, groups, head width, keys of context, length of the buffer
    (1, 1, 1, 8, 0, 16),
    (5, 2, 3, 16, 70, 128),
    (3, 1, 7, 24, 190, 256),
    (17, 3, 3, 64, 100, 192),
    (2, 1, 2, 128, 64, 128),
]


def case(shape, dtype, device, seen):
    """Random queries and keys in a longer buffer, what is not used NaN; `seen`: how rows see each other."""
    rows, heads, groups, width, context, length = shape
    keys, values = (randn(heads, length + 8, width, dtype=dtype, device=device) for _ in range(2))
    used = context + rows
    for each in (keys, values):
        each[:, used:] = float("nan")
    q = randn(rows, heads * groups, width, dtype=dtype, device=device)
    number = torch.arange(rows) + 1
    own, first, limit = {
        "causal": (number, number * 0 + 1, number),
        "blocks": ((number + 1) // 2, number * 0 + 1, (number + 1) // 2),
        "whole": (number * 0 + 1, number * 0 + 1, number * 0 + 1),
        "runs": (number, (number + 1) // 2 * 2 - 1, number),
    }[seen]
    order = torch.cat((torch.zeros(context), own, torch.full((length - used,), 1 << 30)))
    found = [each.int().to(device) for each in (order, first, limit, torch.tensor(used))]
    return q, keys[:, :length], values[:, :length], Visibility(*found)


@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_attention_equals_its_twin_for_any_number_of_shares(device, shape, dtype, splits, monkeypatch):
    monkeypatch.setattr(attention, "_splits", lambda *_: splits)
    given = case(shape, dtype, device, "causal")
    close(attention.attention(*given, scale=0.2), reference.attention(*given, scale=0.2))


@pytest.mark.parametrize("seen", ["blocks", "whole", "runs"])
def test_rows_see_what_their_numbers_say(device, seen):
    given = case((13, 2, 3, 16, 70, 128), torch.float32, device, seen)
    close(attention.attention(*given, scale=0.25), reference.attention(*given, scale=0.25))


def test_the_twin_equals_attention_over_segments():
    """The context whole, the rows' own keys in blocks of two, as in the network."""
    rows, heads, groups, width, context = 5, 2, 3, 16, 30
    q, keys, values, seen = case((rows, heads, groups, width, context, 64), torch.float32, "cpu", "blocks")
    folded = q.view(1, rows, heads, groups, width).permute(0, 2, 3, 1, 4).flatten(2, 3)
    block = torch.arange(rows) // 2
    hidden = torch.zeros(rows, rows).masked_fill(block[None] > block[:, None], float("-inf")).repeat(groups, 1)
    parts = [(slice(0, context), None), (slice(context, context + rows), hidden[None, None])]
    segments = [(folded, keys[None, :, part], values[None, :, part], bias) for part, bias in parts]
    expected = reference.segmented_attention(segments).view(1, heads, groups, rows, width).permute(0, 3, 1, 2, 4)
    found = reference.attention(q, keys, values, seen, width**-0.5)
    close(found.view(1, rows, heads, groups, width), expected)


def test_a_row_that_sees_no_key_gets_zeros(device):
    q, keys, values, seen = case((3, 1, 2, 16, 0, 64), torch.float32, device, "causal")
    blind = Visibility(seen.order, seen.first + 9, seen.limit + 9, seen.used)
    assert not attention.attention(q, keys, values, blind, 0.25).any()
    assert not reference.attention(q, keys, values, blind, 0.25).any()


def test_shares_are_joined_in_the_same_order_whichever_finishes_last(device, monkeypatch):
    monkeypatch.setattr(attention, "_splits", lambda *_: 3)
    given = case((5, 2, 3, 16, 150, 192), torch.bfloat16, device, "causal")
    first = attention.attention(*given, scale=0.25)
    for _ in range(3):  # every run leaves the counters at zero
        assert torch.equal(attention.attention(*given, scale=0.25), first)


def test_the_last_program_joins_few_shares(monkeypatch):
    monkeypatch.setattr(attention, "multiprocessors", lambda _: 132)
    assert attention._splits(torch.device("cpu"), 3, 128) == attention.MOST_SHARES == 8
