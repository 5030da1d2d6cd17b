"""Attention over pages equals its twin and attention over segments, however the keys are split."""

import pytest
import torch
from mercury_kernels import attention, reference
from mercury_kernels.operands import Table

from tests.support.close import close, randn

DTYPES = [torch.float32, torch.bfloat16]
SHAPES = [  # requests, rows, key heads, groups, head width, page, columns
    (1, 1, 1, 1, 8, 16, 1),
    (1, 5, 2, 3, 16, 16, 5),
    (2, 3, 1, 7, 24, 16, 4),
    (2, 17, 3, 3, 64, 32, 7),
    (1, 2, 1, 2, 128, 64, 3),
]


def paged(shape, dtype, device, ends=None, counts=None, own=None):
    """Random queries, pages and a table whose pages are shuffled; everything beyond the counts is NaN.

    Rows see their own keys, from column `own` on, up to themselves.
    """
    batch, rows, heads, groups, width, page, columns = shape
    keys, values = (randn(batch * columns + 1, heads, page, width, dtype=dtype, device=device) for _ in range(2))
    q = randn(batch * rows, heads * groups, width, dtype=dtype, device=device)
    pages = (1 + torch.randperm(batch * columns)).view(batch, columns)
    counts = torch.randint(0, page + 1, (batch, columns)) if counts is None else counts
    ends = torch.full((batch,), columns) if ends is None else ends
    for page_row, count_row in zip(pages.tolist(), counts.tolist(), strict=True):
        for number, count in zip(page_row, count_row, strict=True):
            keys[number, :, count:], values[number, :, count:] = float("nan"), float("nan")
    own = torch.tensor([columns // 2 + b for b in range(batch)] if own is None else own)
    limits = torch.arange(rows).repeat(batch) + 1
    table = Table(*(t.int().to(device) for t in (pages, counts, ends, own, limits)))
    return q, keys, values, table


@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_attention_equals_its_twin_for_any_number_of_shares(device, shape, dtype, splits, monkeypatch):
    monkeypatch.setattr(attention, "_splits", lambda *_: splits)
    q, keys, values, table = paged(shape, dtype, device)
    found = attention.paged_attention(q, keys, values, table)
    close(found, reference.paged_attention(q, keys.nan_to_num(0), values.nan_to_num(0), table))


@pytest.mark.parametrize("splits", [1, 4])
def test_more_columns_than_used_and_idle_requests_change_nothing(device, splits, monkeypatch):
    monkeypatch.setattr(attention, "_splits", lambda *_: splits)
    ends = torch.tensor([3, 0])
    q, keys, values, table = paged((2, 4, 2, 2, 16, 16, 9), torch.float32, device, ends)
    found = attention.paged_attention(q, keys, values, table).view(2, 4, -1)
    close(found.flatten(0, 1), reference.paged_attention(q, keys.nan_to_num(0), values.nan_to_num(0), table))
    assert not found[1].any()
    narrow = Table(table.pages[:1, :3], table.counts[:1, :3], table.ends[:1], table.own[:1], table.limits[:4])
    close(attention.paged_attention(q[:4], keys, values, narrow), found[0])


@pytest.mark.parametrize("splits", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
def test_limits_make_own_rows_causal(device, dtype, splits, monkeypatch):
    monkeypatch.setattr(attention, "_splits", lambda *_: splits)
    batch, rows, page = 2, 20, 16
    counts = torch.full((batch, 5), page)
    shape = batch, rows, 2, 2, 16, page, 5
    q, keys, values, table = paged(shape, dtype, device, torch.tensor([4, 4]), counts, own=[2, 1])
    found = attention.paged_attention(q, keys, values, table)
    close(found, reference.paged_attention(q, keys, values, table))
    keys[table.pages[0, 3].long(), :, 4:] = 50.0  # keys 20 and later of request 0, behind the last row
    close(attention.paged_attention(q, keys, values, table)[:rows], found[:rows])


def test_the_twin_equals_attention_over_segments():
    """Far pages whole, the rows' own causally, as in the network."""
    heads, groups, rows, width, page = 2, 3, 5, 16, 16
    q, keys, values, table = paged(
        (1, rows, heads, groups, width, page, 3), torch.float32, "cpu", counts=torch.tensor([[page, 7, rows]]), own=[2]
    )
    wide = q.view(1, rows, heads, groups, width).permute(0, 2, 3, 1, 4).flatten(2, 3)
    hidden = torch.full((rows, rows), float("-inf")).triu(1).repeat(groups, 1)[None, None]
    cached = []
    for column in range(3):
        number, count = int(table.pages[0, column]), int(table.counts[0, column])
        kept = keys[number, None, :, :count], values[number, None, :, :count]
        cached.append((wide, *kept, hidden if column == 2 else None))
    expected = reference.segmented_attention(cached).view(1, heads, groups, rows, width).permute(0, 3, 1, 2, 4)
    found = reference.paged_attention(q, keys.nan_to_num(0), values.nan_to_num(0), table)
    close(found.view(1, rows, heads, groups, width), expected)


def test_shares_are_joined_in_the_same_order_whichever_finishes_last(device, monkeypatch):
    monkeypatch.setattr(attention, "_splits", lambda *_: 3)
    q, keys, values, table = paged((1, 5, 2, 3, 16, 16, 6), torch.bfloat16, device)
    first = attention.paged_attention(q, keys, values, table)
    for _ in range(3):  # every run leaves the counters at zero
        assert torch.equal(attention.paged_attention(q, keys, values, table), first)


def test_the_last_program_joins_few_shares(monkeypatch):
    monkeypatch.setattr(attention, "multiprocessors", lambda _: 132)
    assert attention._splits(torch.device("cpu"), 3, 128) == attention.MOST_SHARES == 8
