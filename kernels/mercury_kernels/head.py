"""Language-model head that never stores its logits: best token, its logit, log-sum-exp and entropy of each row.

A program computes the logits x of a tile of the vocabulary and keeps four numbers per row; a second kernel joins the
tiles. With s = sum exp(x - top) and u = sum (x - top) exp(x - top), log-sum-exp = top + log s and
entropy = log s - u / s. Two tiles are joined after shifting both to the higher top.

Dimensions: M rows, C channels, V vocabulary with mask and end, K lists of banned tokens.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from mercury_kernels import reference
from mercury_kernels.launch import (
    dot,
    guarded,
    options,
    power,
)
from mercury_kernels.operands import Matrix, TokenChoice

FIELDS = 4


@triton.jit
def products(
    x: tl.tensor,
    norm: tl.tensor,
    weight: tl.tensor,
    m: tl.tensor,
    v: tl.tensor,
    M: tl.tensor,
    C: tl.tensor,
    V: tl.tensor,
    eps: tl.tensor,
    HAS_NORM: tl.constexpr,
    BM: tl.constexpr,
    BV: tl.constexpr,
    BC: tl.constexpr,
) -> tl.tensor:
    """Logits float32 [BM,BV] of the rows m and the tokens v."""
    rows = x + m.to(tl.int64) * C
    weights = weight + tl.minimum(v, V - 1).to(tl.int64) * C
    logits = tl.zeros((BM, BV), tl.float32)
    squares = tl.zeros((BM,), tl.float32)
    for start in range(0, C, BC):
        c = start + tl.arange(0, BC)
        value = tl.load(rows[:, None] + c[None, :], (m < M)[:, None] & (c < C)[None, :], 0.0)
        if HAS_NORM:
            wide = value.to(tl.float32)
            squares += tl.sum(wide * wide, 1)
            value = (wide * tl.load(norm + c, c < C, 0.0).to(tl.float32)[None, :]).to(value.dtype)
        w = tl.load(weights[:, None] + c[None, :], (v < V)[:, None] & (c < C)[None, :], 0.0)
        logits = dot(value, tl.trans(w), logits)
    if HAS_NORM:
        logits *= tl.rsqrt(squares / C + eps)[:, None]
    return logits


@triton.jit(do_not_specialize=["M", "V"])
def _tiles(
    x: tl.tensor,
    norm: tl.tensor,
    weight: tl.tensor,
    banned: tl.tensor,
    ban: tl.tensor,
    partial: tl.tensor,
    M: tl.tensor,
    C: tl.tensor,
    V: tl.tensor,
    eps: tl.tensor,
    HAS_NORM: tl.constexpr,
    ONE_LIST: tl.constexpr,
    BM: tl.constexpr,
    BV: tl.constexpr,
    BC: tl.constexpr,
) -> None:
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    v = tl.program_id(1) * BV + tl.arange(0, BV)
    logits = products(x, norm, weight, m, v, M, C, V, eps, HAS_NORM, BM, BV, BC)
    if ONE_LIST:
        hidden = tl.load(banned + v, v < V, 1)[None, :]
    else:
        listed = tl.load(ban + m, m < M, 0).to(tl.int64)[:, None]
        hidden = tl.load(banned + listed * V + v[None, :], (m < M)[:, None] & (v < V)[None, :], 1)
    logits = tl.where(hidden != 0, float("-inf"), logits)
    top, place = tl.max(logits, 1, return_indices=True)
    base = tl.where(top == float("-inf"), 0.0, top)[:, None]
    probability = tl.exp(logits - base)
    away = tl.where(probability > 0.0, logits - base, 0.0)
    out = partial + (tl.program_id(1).to(tl.int64) * M + m) * 4
    tl.store(out, top, m < M)
    tl.store(out + 1, (tl.program_id(1) * BV + place).to(tl.float32), m < M)  # exact below 2^24
    tl.store(out + 2, tl.sum(probability, 1), m < M)
    tl.store(out + 3, tl.sum(probability * away, 1), m < M)


@triton.jit(do_not_specialize=["M", "count"])
def _join(
    partial: tl.tensor,
    token: tl.tensor,
    tops: tl.tensor,
    totals: tl.tensor,
    entropies: tl.tensor,
    M: tl.tensor,
    count: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    row = tl.program_id(0)
    tile = tl.arange(0, BLOCK)
    at = partial + (tile.to(tl.int64) * M + row) * 4
    inside = tile < count
    top = tl.load(at, inside, float("-inf"))
    best = tl.max(top, 0)
    number = tl.where(top == best, tl.load(at + 1, inside, float("inf")), float("inf"))
    amount, moment = tl.load(at + 2, inside, 0.0), tl.load(at + 3, inside, 0.0)
    shift = tl.where(top == float("-inf"), 0.0, top - best)
    gain = tl.where(top == float("-inf"), 0.0, tl.exp(shift))
    total = tl.sum(amount * gain, 0)
    moment = tl.sum((moment + amount * shift) * gain, 0)
    least = tl.min(number, 0)
    tl.store(token + row, tl.where(least < float("inf"), least, 0.0).to(tl.int32))  # a row of NaN has no best token
    tl.store(tops + row, best)
    tl.store(totals + row, best + tl.log(total))
    tl.store(entropies + row, tl.log(total) - moment / total)


@guarded(reference.choices)
def choices(
    hidden: Tensor,
    matrix: Matrix,
    banned: Tensor,
    ban: Tensor,
    norm: Tensor | None = None,
    eps: float = 0.0,
) -> TokenChoice:
    """The choice of every row of hidden [M,C] over matrix [V,C]; of equally good tokens, the lowest.

    banned bool [K,V] marks tokens that are never chosen, but never all; row m obeys banned[ban[m]], ban int32 [M].
    """
    hidden, device = hidden.contiguous(), hidden.device
    rows, channels = hidden.shape
    vocabulary = matrix.outputs
    high, wide, deep = head_tiles(rows, hidden.element_size())
    count = triton.cdiv(vocabulary, wide)
    partial = torch.empty(count * rows * FIELDS, device=device)
    token = torch.empty(rows, dtype=torch.int32, device=device)
    top, total, entropy = torch.empty(3, rows, device=device).unbind()
    if rows:
        _tiles[(triton.cdiv(rows, high), count)](
            hidden, hidden if norm is None else norm, matrix.weight,
            banned.view(torch.uint8), ban, partial, rows, channels, vocabulary, eps, norm is not None,
            len(banned) == 1, high, wide, deep, **options(device, 8 if high == 64 else 4, 4),
        )  # fmt: skip
        warps = 8 if count > 1024 else 4 if count > 256 else 1
        _join[(rows,)](partial, token, top, total, entropy, rows, count, power(count), **options(device, warps, 1))
    return TokenChoice(token, top, total, entropy)


def head_tiles(rows: int, bytes_: int) -> tuple[int, int, int]:
    """Rows and words of a tile of logits, and channels at a time, few enough for half of the registers."""
    high = power(rows, most=64)
    return high, 128 if high < 64 else 64, 64 if bytes_ == 2 else 32
