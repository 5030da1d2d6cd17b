"""Attention over a buffer of keys equals its twin and attention over segments, however the keys are split."""

import pytest
import torch
from mercury_kernels import attention, reference
from mercury_kernels.operands import Rows

from tests.support.close import close, randn
from tests.support.reference_layers import segmented_attention

DTYPES = [torch.float32, torch.bfloat16]
SHAPES = [  # rows, key heads, groups, head width, keys of context, length of the buffer
    (1, 1, 1, 8, 0, 16),
    (5, 2, 3, 16, 70, 128),
    (3, 1, 7, 24, 190, 256),
    (17, 3, 3, 64, 100, 192),
    (2, 1, 2, 128, 64, 128),
]


def case(shape, dtype, device, seen):
    """Random queries and keys in a longer buffer, what no row sees large; `seen`: how rows see each other."""
    count, heads, groups, width, context, length = shape
    keys, values = (randn(heads, length + 8, width, dtype=dtype, device=device) for _ in range(2))
    for each in (keys, values):
        each[:, context + count :] = 1e4
    q = randn(count, heads * groups, width, dtype=dtype, device=device)
    number = torch.arange(count, device=device) + 1
    order, first = {
        "causal": (number, number * 0 + 1),
        "blocks": ((number + 1) // 2, number * 0 + 1),
        "whole": (number * 0 + 1, number * 0 + 1),
        "runs": (number, (number + 1) // 2 * 2 - 1),
    }[seen]
    table = torch.empty(0, width)
    return (
        q,
        keys[:, :length],
        values[:, :length],
        Rows(number, order, first, number.new_full((), context), table, table),
    )


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
    count, heads, groups, width, context = 5, 2, 3, 16, 30
    q, keys, values, rows = case((count, heads, groups, width, context, 64), torch.float32, "cpu", "blocks")
    folded = q.view(1, count, heads, groups, width).permute(0, 2, 3, 1, 4).flatten(2, 3)
    block = torch.arange(count) // 2
    hidden = torch.zeros(count, count).masked_fill(block[None] > block[:, None], float("-inf")).repeat(groups, 1)
    parts = [(slice(0, context), None), (slice(context, context + count), hidden[None, None])]
    segments = [(folded, keys[None, :, part], values[None, :, part], bias) for part, bias in parts]
    expected = segmented_attention(segments).view(1, heads, groups, count, width).permute(0, 3, 1, 2, 4)
    found = reference.attention(q, keys, values, rows, width**-0.5)
    close(found.view(1, count, heads, groups, width), expected)


def test_shares_are_joined_in_the_same_order_whichever_finishes_last(device, monkeypatch):
    monkeypatch.setattr(attention, "_splits", lambda *_: 3)
    given = case((5, 2, 3, 16, 150, 192), torch.bfloat16, device, "causal")
    first = attention.attention(*given, scale=0.25)
    for _ in range(3):  # every run leaves the counters at zero
        assert torch.equal(attention.attention(*given, scale=0.25), first)


def test_the_last_program_joins_few_shares(monkeypatch):
    monkeypatch.setattr(attention, "multiprocessors", lambda _: 132)
    assert attention._splits(torch.device("cpu"), 3, 128) == attention.MOST_SHARES == 8
