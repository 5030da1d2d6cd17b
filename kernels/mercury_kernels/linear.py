"""y = x W^T for few rows, with an RMSNorm before and bias, SwiGLU and residual after it, in one pass over the weights.

The norm's factor 1/rms is one number per row: norm(x) W^T = (x * weight) W^T / rms(x), so it is applied after the sum,
and the squares are collected in the same pass. Long sums are split over several programs; the last one to finish adds
the shares in a fixed order.

An adapter adds (x A^T) B^T. A is small, so every program computes x A^T beside its tile, which saves two launches.

Dimensions: M rows, K inputs, N outputs (of one half when gated).
"""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from mercury_kernels.capture import COUNTERS, counters
from mercury_kernels.launch import dot, multiprocessors, options, power, stages
from mercury_kernels.operands import Matrix

LARGE = 2048
"""Smallest side of a matrix whose tiles have at least twice as many outputs as rows, so that they read more weights
than rows."""


@triton.jit
def _weights(rows, scales, column, columns, valid, start, last, kind: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Weights [BN,BK] from input `start` on, of rows at the pointers [BN]; their scales stand in [K/32,columns]."""
    k = start + tl.arange(0, BK)
    w = tl.load(rows[:, None] + k[None, :], valid[:, None] & (k < last)[None, :], 0)
    if scales is not None:
        group = start // 32 + tl.arange(0, BK // 32)
        at = group.to(tl.int64)[:, None] * columns + column[None, :]
        scale = tl.load(scales + at, (group * 32 < last)[:, None] & valid[None, :], 0.0).to(tl.float32)
        w = (w.to(tl.float32).reshape(BN, BK // 32, 32) * tl.trans(scale)[:, :, None]).reshape(BN, BK)
    return w.to(kind)


@triton.jit
def _lowered(low, value, down, k, last, K, RANK: tl.constexpr, BR: tl.constexpr):
    """low [BM,BR] and the product of rows [BM,BK] with an adapter's first factor."""
    r = tl.arange(0, BR)
    a = tl.load(down + r[:, None] * K + k[None, :], (r < RANK)[:, None] & (k < last)[None, :], 0.0)
    return dot(value, tl.trans(a), low)


@triton.jit
def _raised(acc, low, up, n, N, RANK: tl.constexpr, BR: tl.constexpr):
    """acc [BM,BN] and the product of low with the rows n of an adapter's second factor."""
    r = tl.arange(0, BR)
    b = tl.load(up + n.to(tl.int64)[:, None] * RANK + r[None, :], (n < N)[:, None] & (r < RANK)[None, :], 0.0)
    return dot(low.to(b.dtype), tl.trans(b), acc)


@triton.jit(do_not_specialize=["M", "shares"])
def _linear(
    x, weight, scales, out, bias, norm, residual, adapter_down, adapter_up, partial, square_sums, counter,
    M, N, K, each, shares, eps,
    GATED: tl.constexpr, RANK: tl.constexpr, BR: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BM + tl.arange(0, BM)  # tiles of rows are neighbours, so they share the weights in the cache
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    share = tl.program_id(2)
    acc, up = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    squares = tl.zeros((BM,), tl.float32)
    low = tl.zeros((BM, BR), tl.float32)
    rows = x + m.to(tl.int64) * K
    weights = weight + tl.minimum(n, N - 1).to(tl.int64) * K
    columns = N * 2 if GATED else N
    first, last = share * each, tl.minimum(share * each + each, K)
    for start in range(first, last, BK):
        k = start + tl.arange(0, BK)
        value = tl.load(rows[:, None] + k[None, :], (m < M)[:, None] & (k < last)[None, :], 0.0)
        if norm is not None:
            wide = value.to(tl.float32)
            squares += tl.sum(wide * wide, 1)
            value = (wide * tl.load(norm + k, k < last, 0.0).to(tl.float32)[None, :]).to(value.dtype)
        w = _weights(weights, scales, n, columns, n < N, start, last, value.dtype, BN, BK)
        acc = dot(value, tl.trans(w), acc)
        if GATED:
            upper = weights + N.to(tl.int64) * K
            w = _weights(upper, scales, N + n, columns, n < N, start, last, value.dtype, BN, BK)
            up = dot(value, tl.trans(w), up)
        if RANK:
            low = _lowered(low, value, adapter_down, k, last, K, RANK, BR)
    if RANK:
        acc = _raised(acc, low, adapter_up, n, N, RANK, BR)
        if GATED:
            up = _raised(up, low, adapter_up + N.to(tl.int64) * RANK, n, N, RANK, BR)
    if partial is not None:
        number = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
        lane = tl.arange(0, BM)
        cell = lane[:, None] * BN + tl.arange(0, BN)[None, :]
        area: tl.constexpr = BM * BN * (2 if GATED else 1)
        mine = partial + number.to(tl.int64) * shares * area
        sums_of = square_sums + number.to(tl.int64) * shares * BM + lane
        tl.store(mine + share * area + cell, acc)
        if GATED:
            tl.store(mine + share * area + BM * BN + cell, up)
        if norm is not None:
            tl.store(sums_of + share * BM, squares)
        tl.debug_barrier()
        if tl.atomic_add(counter + number, 1, sem="acq_rel") != shares - 1:
            return
        acc, up = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
        squares = tl.zeros((BM,), tl.float32)
        for s in tl.range(shares, loop_unroll_factor=4):  # their loads are on their way together
            acc += tl.load(mine + s * area + cell, cache_modifier=".cg")
            if GATED:
                up += tl.load(mine + s * area + BM * BN + cell, cache_modifier=".cg")
            if norm is not None:
                squares += tl.load(sums_of + s * BM, cache_modifier=".cg")
        tl.store(counter + number, 0)
    if norm is not None:
        rms = tl.rsqrt(squares / K + eps)[:, None]
        acc, up = acc * rms, up * rms
    if bias is not None:
        acc += tl.load(bias + n, n < N, 0.0).to(tl.float32)[None, :]
        if GATED:
            up += tl.load(bias + N + n, n < N, 0.0).to(tl.float32)[None, :]
    if GATED:
        acc = acc * tl.sigmoid(acc) * up
    inside, at = (m < M)[:, None] & (n < N)[None, :], m.to(tl.int64)[:, None] * N + n[None, :]
    if residual is not None:
        acc += tl.load(residual + at, inside, 0.0).to(tl.float32)
    tl.store(out + at, acc.to(out.dtype.element_ty), inside)


def linear(
    x: Tensor,
    matrix: Matrix,
    norm: Tensor | None = None,
    eps: float = 0.0,
    residual: Tensor | None = None,
    gated: bool = False,
) -> Tensor:
    """See `reference.linear`."""
    x, is_coded = x.contiguous(), matrix.scales is not None
    inner, outputs = x.shape[1], matrix.outputs // (2 if gated else 1)
    out = torch.empty(len(x), outputs, dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    rows, columns, depth, splits = tiles(x.device, len(x), outputs, inner, x.element_size(), gated, is_coded)
    grid = (triton.cdiv(len(x), rows), triton.cdiv(outputs, columns), splits)
    rank, width = ranks(matrix)
    depth = min(depth, 64) if rank and gated else depth  # 128 spills 112 bytes on 8.9
    each = triton.cdiv(triton.cdiv(inner, depth), splits) * depth
    partial = squares = None
    if splits > 1:
        squares = torch.empty(math.prod(grid) * rows, device=x.device)
        partial = torch.empty(len(squares) * columns * (1 + gated), device=x.device)
    warps = 8 if rows * columns * (1 + gated) > (2048 if is_coded else 4096) else 4  # with 4, 32 rows spill on 10.0
    most = 3 if norm is not None and columns == 128 else 4  # a fourth spills 8 bytes on 10.0
    beside = (rows + (norm is not None) + width * (rank > 0)) * x.element_size()
    step = int(depth * (beside + columns * (1 + gated) * matrix.weight_bytes))
    _linear[grid](
        x, matrix.weight, matrix.scales, out, matrix.bias, norm, residual, matrix.down, matrix.up, partial, squares,
        counters(x.device), len(x), outputs, inner, each, splits, eps, gated, rank, width, rows, columns, depth,
        **options(x.device, warps, stages(x.device, most, step)),
    )  # fmt: skip
    return out


def tiles(
    device: torch.device, rows: int, outputs: int, inner: int, bytes_: int, gated: bool = False, is_coded: bool = False
) -> tuple[int, int, int, int]:
    """Tile sizes BM, BN, BK and the number of shares.

    Every multiprocessor streams a part of the weights.
    """
    deep = 128 if bytes_ < 4 else 32
    high = power(rows, most=32 if gated and is_coded else 64)  # with 64 each of the warps decodes the whole tile
    processors = multiprocessors(device)
    wide = 64 if outputs >= 64 * processors else 32
    large = min(outputs, inner) >= LARGE
    if large:
        wide = max(64, high if gated else 2 * high)  # a gated product has as many outputs again
    programs = triton.cdiv(outputs, wide) * triton.cdiv(rows, high)
    most = max(1, inner // (2 * deep))
    splits = max(1, min(triton.cdiv(processors, programs) if large else processors // programs, most, 8))
    return high, wide, deep, splits if programs <= COUNTERS else 1


def ranks(matrix: Matrix) -> tuple[int, int]:
    """The rank of a matrix's adapter, 0 for none, and the rank padded for tiles."""
    rank = 0 if matrix.down is None else len(matrix.down)
    return rank, power(rank)
