"""Attention of rows to cached pages, the far ones and their own, with the keys split over programs.

out = sum_t exp(s_t - max) v_t / sum_t exp(s_t - max) over all keys t, with scores s_t = q . k_t / sqrt(D).

Each request lists its pages in a table. A program takes a share of the columns for one key head and a tile of its query
rows; the last program to finish a tile joins the shares in a fixed order, so results do not depend on timing.
arXiv 2205.14135, 2311.01282.

Dimensions: B requests, R rows per request, H key heads, G query heads per key head, D head width, N pages, P tokens per
page, W table columns.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from mercury_kernels import reference
from mercury_kernels.counters import COUNTERS, counters
from mercury_kernels.launch import (
    dot,
    guarded,
    multiprocessors,
    options,
    power,
)
from mercury_kernels.operands import Table

LOG2_E = 1.4426950408889634

MOST_SHARES = 8
"""Shares that the last program joins; each is a round trip to memory unless the loads overlap."""


@triton.jit
def _span(
    q: tl.tensor,
    acc: tl.tensor,
    top: tl.tensor,
    total: tl.tensor,
    first: tl.tensor,
    last: tl.tensor,
    pages: tl.tensor,
    counts: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    own: tl.tensor,
    limit: tl.tensor,
    scale: tl.tensor,
    stride: tl.tensor,
    D: tl.tensor,
    P: tl.constexpr,
    BD: tl.constexpr,
) -> tl.tensor:
    """Fold the columns from `first` to `last` into acc [BM,BD], top and total [BM]; scores are logarithms to base 2."""
    d = tl.arange(0, BD)
    t = tl.arange(0, P)
    tile = t[:, None] * D + d[None, :]
    for column in range(first, last):
        page = tl.load(pages + column).to(tl.int64) * stride
        count = tl.load(counts + column)
        inside = (t < count)[:, None] & (d < D)[None, :]
        k = tl.load(keys + page + tile, inside, 0.0)
        v = tl.load(values + page + tile, inside, 0.0)
        scores = dot(q, tl.trans(k), tl.zeros((q.shape[0], P), tl.float32)) * scale
        last_seen = tl.where(column < own, P, limit - (column - own) * P)
        seen = t[None, :] < tl.minimum(last_seen, count)[:, None]
        scores = tl.where(seen, scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        base = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(scores - base[:, None])
        keep = tl.exp2(top - base)
        total = total * keep + tl.sum(weights, 1)
        acc = dot(weights.to(v.dtype), v, acc * keep[:, None])
        top = higher
    return acc, top, total


@triton.jit(do_not_specialize=["R", "W", "shares"])
def _attend(
    q: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    out: tl.tensor,
    pages: tl.tensor,
    counts: tl.tensor,
    ends: tl.tensor,
    own: tl.tensor,
    limits: tl.tensor,
    partial: tl.tensor,
    state: tl.tensor,
    counter: tl.tensor,
    scale: tl.tensor,
    R: tl.tensor,
    W: tl.tensor,
    H: tl.tensor,
    D: tl.tensor,
    shares: tl.tensor,
    G: tl.constexpr,
    SPLIT: tl.constexpr,
    P: tl.constexpr,
    BM: tl.constexpr,
    BD: tl.constexpr,
    SHARES: tl.constexpr,
    UNROLL: tl.constexpr,
) -> None:
    tile, head, batch = tl.program_id(0), tl.program_id(1) // shares, tl.program_id(2)
    share = tl.program_id(1) % shares
    m = tile * BM + tl.arange(0, BM)
    valid = m < R * G
    row = batch * R + m // G
    d = tl.arange(0, BD)
    at = ((row * H + head) * G + m % G).to(tl.int64)[:, None] * D + d[None, :]
    inside = valid[:, None] & (d < D)[None, :]
    columns = tl.load(ends + batch)
    each = tl.cdiv(columns, shares)
    first = share * each
    last = tl.minimum(first + each, columns)
    start, limit = tl.load(own + batch), tl.load(limits + row, valid, 0)
    acc = tl.zeros((BM, BD), tl.float32)
    top, total = tl.full((BM,), float("-inf"), tl.float32), tl.zeros((BM,), tl.float32)
    keys += head * P * D
    values += head * P * D
    stride = H * P * D
    acc, top, total = _span(
        tl.load(q + at, inside, 0.0), acc, top, total, first, last, pages + batch * W,
        counts + batch * W, keys, values, start, limit, scale, stride, D, P, BD,
    )  # fmt: skip
    if not SPLIT:
        total = tl.where(total == 0.0, 1.0, total)
        tl.store(out + at, (acc / total[:, None]).to(out.dtype.element_ty), inside)
    else:
        number = (batch * H + head) * tl.num_programs(0) + tile
        lane = tl.arange(0, BM)
        piece = number.to(tl.int64) * shares * BM + lane
        tl.store(partial + (piece + share * BM)[:, None] * BD + d[None, :], acc)
        tl.store(state + (piece + share * BM) * 2, top)
        tl.store(state + (piece + share * BM) * 2 + 1, total)
        tl.debug_barrier()
        if tl.atomic_add(counter + number, 1, sem="acq_rel") == shares - 1:
            each_s = tl.arange(0, SHARES)[:, None]
            known = each_s < shares
            spot = state + (piece[None, :] + each_s * BM) * 2
            tops = tl.load(spot, known, float("-inf"), cache_modifier=".cg")
            base = tl.max(tops, 0)
            base = tl.where(base == float("-inf"), 0.0, base)
            total = tl.sum(tl.load(spot + 1, known, 0.0, cache_modifier=".cg") * tl.exp2(tops - base[None, :]), 0)
            acc = tl.zeros((BM, BD), tl.float32)
            for s in tl.range(shares, loop_unroll_factor=UNROLL):  # the loads of several are on their way together
                gain = tl.exp2(tl.load(state + (piece + s * BM) * 2, cache_modifier=".cg") - base)
                value = tl.load(partial + (piece + s * BM)[:, None] * BD + d[None, :], cache_modifier=".cg")
                acc += value * gain[:, None]
            total = tl.where(total == 0.0, 1.0, total)
            tl.store(out + at, (acc / total[:, None]).to(out.dtype.element_ty), inside)
            tl.store(counter + number, 0)


@guarded(reference.paged_attention)
def paged_attention(q: Tensor, keys: Tensor, values: Tensor, table: Table) -> Tensor:
    """[M,H*G*D] for q [M,H*G,D] and pages [N,H,P,D]; P is a power of two, at least 16."""
    batch, columns = table.pages.shape
    heads, size, width = keys.shape[1:]
    groups, rows = q.shape[1] // heads, len(q) // max(batch, 1)
    q = q.contiguous()
    out = q.new_empty(len(q), q.shape[1] * width)
    tile, warps, stages = _tile(rows * groups, batch * heads, power(width), q.element_size())
    tiles = triton.cdiv(rows * groups, tile)
    splits = _splits(q.device, batch * heads * tiles, columns)
    block = power(width)
    pieces = batch * heads * tiles * splits
    partial = torch.empty(pieces * tile * block if splits > 1 else 1, dtype=torch.float32, device=q.device)
    state = torch.empty(pieces * tile * 2 if splits > 1 else 1, dtype=torch.float32, device=q.device)
    if out.numel():
        _attend[(tiles, heads * splits, batch)](
            q, keys, values, out, table.pages, table.counts, table.ends, table.own, table.limits, partial, state,
            counters(q.device), width**-0.5 * LOG2_E, rows, columns, heads, width, splits, groups, splits > 1, size,
            tile, block, MOST_SHARES, 2, **options(q.device, warps, stages),
        )  # fmt: skip
    return out


def _tile(rows: int, programs: int, width: int, bytes_: int) -> tuple[int, int, int]:
    """Query rows of a program, its warps and stages; float32 takes small tiles, which just fit into registers."""
    if bytes_ == 4:
        return 16, 4 if width <= 64 else 16, 1
    return power(rows, most=32 if programs < 32 else 64), 4, 3 if width <= 64 else 2


def _splits(device: torch.device, programs: int, columns: int) -> int:
    """Number of shares of the keys that gives each multiprocessor about two programs."""
    if programs > COUNTERS:
        return 1
    wanted = -(-2 * multiprocessors(device) // max(programs, 1))
    return max(1, min(wanted, columns, MOST_SHARES))
