"""Attention of rows to a buffer of keys, split over programs.

out = sum_t exp(s_t - max) v_t / sum_t exp(s_t - max) over the keys t that a row sees, with scores s_t = scale q . k_t.

A program takes a share of the keys for one key head and a tile of query rows; the last program to finish a tile joins
the shares in a fixed order, so results do not depend on timing. arXiv 2205.14135, 2311.01282.

Dimensions: M rows, H key heads, G query heads per key head, D head width, T keys.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from mercury_kernels.capture import COUNTERS, counters
from mercury_kernels.launch import dot, multiprocessors, options, power
from mercury_kernels.operands import Rows

LOG2_E = 1.4426950408889634

MOST_SHARES = 8
"""Most shares that the last program joins; each is a round trip to memory unless the loads overlap."""

KEYS = 64
"""Keys of a tile."""


@triton.jit(do_not_specialize=["M", "shares"])
def _attend(
    q, keys, values, out, order, firsts, contexts, partial, state, counter,
    scale, M, H, D, stride, shares,
    G: tl.constexpr, BM: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr, SHARES: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    tile, head = tl.program_id(0), tl.program_id(1) // shares
    share = tl.program_id(1) % shares
    m = tile * BM + tl.arange(0, BM)
    valid = m < M * G
    row = m // G
    d = tl.arange(0, BD)
    at = ((row * H + head) * G + m % G).to(tl.int64)[:, None] * D + d[None, :]
    inside = valid[:, None] & (d < D)[None, :]
    context = tl.load(contexts).to(tl.int32)
    count = context + M
    each = tl.cdiv(tl.cdiv(count, BT), shares) * BT
    keys += head.to(tl.int64) * stride
    values += head.to(tl.int64) * stride
    first, last = tl.load(firsts + row, valid, 0).to(tl.int32), tl.load(order + row, valid, 1 << 30).to(tl.int32)
    query = tl.load(q + at, inside, 0.0)
    acc = tl.zeros((BM, BD), tl.float32)
    top, total = tl.full((BM,), float("-inf"), tl.float32), tl.zeros((BM,), tl.float32)
    for start in range(share * each, tl.minimum(share * each + each, count), BT):
        t = start + tl.arange(0, BT)
        spot = t[:, None] * D + d[None, :]
        used = (t < count)[:, None] & (d < D)[None, :]
        k = tl.load(keys + spot, used, 0.0)
        v = tl.load(values + spot, used, 0.0)
        place = tl.load(order + t - context, (t >= context) & (t < count), 0).to(tl.int32)[None, :]
        scores = dot(query, tl.trans(k), tl.zeros((BM, BT), tl.float32)) * scale
        own = (place >= first[:, None]) & (place <= last[:, None]) & (t < count)[None, :]
        scores = tl.where(own | (t < context)[None, :], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        base = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(scores - base[:, None])
        keep = tl.exp2(top - base)
        total = total * keep + tl.sum(weights, 1)
        acc = dot(weights.to(v.dtype), v, acc * keep[:, None])
        top = higher
    if partial is not None:
        number = head * tl.num_programs(0) + tile
        piece = number.to(tl.int64) * shares * BM + tl.arange(0, BM)
        tl.store(partial + (piece + share * BM)[:, None] * BD + d[None, :], acc)
        tl.store(state + (piece + share * BM) * 2, top)
        tl.store(state + (piece + share * BM) * 2 + 1, total)
        tl.debug_barrier()
        if tl.atomic_add(counter + number, 1, sem="acq_rel") != shares - 1:
            return
        each_s = tl.arange(0, SHARES)[:, None]
        known = each_s < shares
        part = state + (piece[None, :] + each_s * BM) * 2
        tops = tl.load(part, known, float("-inf"), cache_modifier=".cg")
        base = tl.max(tops, 0)
        total = tl.sum(tl.load(part + 1, known, 0.0, cache_modifier=".cg") * tl.exp2(tops - base[None, :]), 0)
        acc = tl.zeros((BM, BD), tl.float32)
        for s in tl.range(shares, loop_unroll_factor=UNROLL):  # the loads of several are on their way together
            gain = tl.exp2(tl.load(state + (piece + s * BM) * 2, cache_modifier=".cg") - base)
            value = tl.load(partial + (piece + s * BM)[:, None] * BD + d[None, :], cache_modifier=".cg")
            acc += value * gain[:, None]
        tl.store(counter + number, 0)
    tl.store(out + at, (acc / total[:, None]).to(out.dtype.element_ty), inside)


def attention(q: Tensor, keys: Tensor, values: Tensor, rows: Rows, scale: float) -> Tensor:
    """See `reference.attention`; the heads of keys and values may lie farther apart."""
    heads, length, width = keys.shape
    count, groups = len(q), q.shape[1] // heads
    q = q.contiguous()
    out = q.new_empty(count, q.shape[1] * width)
    block = power(width)
    tile, warps, stages = _tile(count * groups, heads, block, q.element_size())
    tiles = triton.cdiv(count * groups, tile)
    splits = _splits(q.device, heads * tiles, triton.cdiv(length, KEYS))
    partial = state = None
    if splits > 1:
        partial = torch.empty(heads * tiles * splits * tile, block, device=q.device)
        state = torch.empty(len(partial), 2, device=q.device)
    _attend[(tiles, heads * splits)](
        q, keys, values, out, rows.order, rows.first, rows.context, partial, state, counters(q.device),
        scale * LOG2_E, count, heads, width, keys.stride(0), splits, groups, tile, KEYS, block,
        MOST_SHARES, 2, **options(q.device, warps, stages),
    )  # fmt: skip
    return out


def _tile(rows: int, programs: int, width: int, bytes_: int) -> tuple[int, int, int]:
    """Query rows of a program, its warps and stages; float32 takes small tiles, which just fit into registers."""
    if bytes_ == 4:
        return 16, 4 if width <= 64 else 16, 1
    return power(rows, most=32 if programs < 32 else 64), 4, 3 if width <= 64 else 2


def _splits(device: torch.device, programs: int, tiles: int) -> int:
    """Number of shares of the keys that gives each multiprocessor about two programs."""
    if programs > COUNTERS:
        return 1
    wanted = -(-2 * multiprocessors(device) // max(programs, 1))
    return max(1, min(wanted, tiles, MOST_SHARES))
