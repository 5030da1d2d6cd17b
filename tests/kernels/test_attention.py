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


def paged(shape, dtype, device, ends=None, counts=None):
    """Random queries, pages and a table whose pages are shuffled; everything beyond the counts is NaN."""
    batch, rows, heads, groups, width, page, columns = shape
    keys, values = (randn(batch * columns + 1, heads, page, width, dtype=dtype, device=device) for _ in range(2))
    q = randn(2, batch * rows, heads * groups, width, dtype=dtype, device=device)
    pages = (1 + torch.randperm(batch * columns)).view(batch, columns)
    counts = torch.randint(0, page + 1, (batch, columns)) if counts is None else counts
    ends = torch.tensor([[max(1, columns // 2 + b), columns] for b in range(batch)]) if ends is None else ends
    for page_row, count_row in zip(pages.tolist(), counts.tolist(), strict=True):
        for number, count in zip(page_row, count_row, strict=True):
            keys[number, :, count:], values[number, :, count:] = float("nan"), float("nan")
    table = Table(*(t.int().to(device) for t in (pages, counts, ends.clamp(max=columns))))
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
    ends = torch.tensor([[2, 3], [0, 0]])
    q, keys, values, table = paged((2, 4, 2, 2, 16, 16, 9), torch.float32, device, ends)
    found = attention.paged_attention(q, keys, values, table).view(2, 4, -1)
    close(found.flatten(0, 1), reference.paged_attention(q, keys.nan_to_num(0), values.nan_to_num(0), table))
    assert not found[1].any()
    narrow = Table(table.pages[:1, :3], table.counts[:1, :3], table.ends[:1])
    close(attention.paged_attention(q[:, :4], keys, values, narrow), found[0])


def test_a_prefix_only_and_a_suffix_only_table_use_their_own_frame(device):
    shape = (1, 3, 1, 2, 16, 16, 2)
    for near, frame in ((2, 0), (0, 1)):
        q, keys, values, table = paged(shape, torch.float32, device, torch.tensor([[near, 2]]))
        found = attention.paged_attention(q, keys, values, table)
        q[1 - frame] = 99.0
        close(attention.paged_attention(q, keys, values, table), found)


@pytest.mark.parametrize("splits", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
def test_limits_make_own_rows_causal(device, dtype, splits, monkeypatch):
    monkeypatch.setattr(attention, "_splits", lambda *_: splits)
    batch, rows, page = 2, 20, 16
    counts = torch.full((batch, 5), page)
    q, keys, values, table = paged(
        (batch, rows, 2, 2, 16, page, 5), dtype, device, torch.tensor([[4, 5], [4, 4]]), counts
    )
    own = torch.tensor([2, 1]).int().to(device)
    limits = (torch.arange(rows).repeat(batch) + 1).int().to(device)
    causal = Table(table.pages, table.counts, table.ends, own, limits)
    found = attention.paged_attention(q, keys, values, causal)
    close(found, reference.paged_attention(q, keys, values, causal))
    keys[table.pages[0, 3].long(), :, 4:] = 50.0  # keys 20 and later of request 0, behind the last row
    close(attention.paged_attention(q, keys, values, causal)[:rows], found[:rows])


def test_the_twin_equals_attention_over_segments():
    """Prefix and canvas meet the prefix frame, the suffix its own, as in the network."""
    heads, groups, rows, width, page = 2, 3, 5, 16, 16
    q, keys, values, table = paged(
        (1, rows, heads, groups, width, page, 3),
        torch.float32,
        "cpu",
        torch.tensor([[2, 3]]),
        torch.tensor([[page, rows, 7]]),
    )
    near, away = (x.view(1, rows, heads, groups, width).permute(0, 2, 3, 1, 4).flatten(2, 3) for x in q)
    cached = []
    for column, frame in ((0, near), (1, near), (2, away)):
        number, count = int(table.pages[0, column]), int(table.counts[0, column])
        cached.append((frame, keys[number, None, :, :count], values[number, None, :, :count], None))
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
