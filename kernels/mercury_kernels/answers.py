"""Figures of each row's distribution over the vocabulary, without storing its logits.

A program computes the logits of a tile of the vocabulary and keeps six numbers per row; a second kernel, a program
per row, joins the tiles. With l the logits of the allowed tokens, t their maximum and s = sum exp(l - t), the entropy
is t + log s - sum exp(l - t) l / s.

Dimensions: W rows, C channels, V vocabulary, N ban lists.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from mercury_kernels.launch import dot, options, power
from mercury_kernels.operands import Matrix

FIELDS = 6


@triton.jit(do_not_specialize=["W", "V", "never"])
def _tell(
    x, weight, bits, lists, partial, kept,
    W, C, V, words, scale, never,
    BM: tl.constexpr, BV: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    v = tl.program_id(1) * BV + tl.arange(0, BV)
    rows = x + m.to(tl.int64) * C
    weights = weight + tl.minimum(v, V - 1).to(tl.int64) * C
    logits = tl.zeros((BM, BV), tl.float32)
    for start in range(0, C, BC):
        c = start + tl.arange(0, BC)
        value = tl.load(rows[:, None] + c[None, :], (m < W)[:, None] & (c < C)[None, :], 0.0)
        w = tl.load(weights[:, None] + c[None, :], (v < V)[:, None] & (c < C)[None, :], 0.0)
        logits = dot(value, tl.trans(w), logits)
    logits *= scale
    inside = (m < W)[:, None] & (v < V)[None, :]
    logits = tl.where(((v < V) & (v != never))[None, :], logits, float("-inf"))
    listed = tl.load(lists + m, m < W, -1)[:, None]
    place = tl.maximum(listed, 0).to(tl.int64) * words + (v // 32)[None, :]
    word = tl.load(bits + place, inside & (listed >= 0), 0)
    allowed = ((word >> (v % 32)[None, :]) & 1) == 0
    whole_top = tl.max(logits, 1)
    whole = tl.sum(tl.exp(logits - whole_top[:, None]), 1)
    logits = tl.where(allowed, logits, float("-inf"))
    if kept is not None:
        tl.store(kept + m.to(tl.int64)[:, None] * V + v[None, :], logits, inside)
    top, best = tl.max(logits, 1, return_indices=True)
    base = tl.where(top == float("-inf"), 0.0, top)
    power = tl.exp(logits - base[:, None])
    count = tl.num_programs(1)
    out = partial + m.to(tl.int64) * count + tl.program_id(1)
    field = W.to(tl.int64) * count
    tl.store(out, top, m < W)
    tl.store(out + field, (tl.program_id(1) * BV + best).to(tl.float32), m < W)  # exact below 2^24
    tl.store(out + 2 * field, tl.sum(power, 1), m < W)
    tl.store(out + 3 * field, tl.sum(tl.where(power > 0, power * logits, 0.0), 1), m < W)
    tl.store(out + 4 * field, whole_top, m < W)
    tl.store(out + 5 * field, whole, m < W)


@triton.jit(do_not_specialize=["W", "count"])
def _join(partial, token, figures, W, count, BT: tl.constexpr):
    row, lane = tl.program_id(0), tl.arange(0, BT)
    field = W.to(tl.int64) * count
    top, whole_top = tl.full((BT,), float("-inf"), tl.float32), tl.full((BT,), float("-inf"), tl.float32)
    number, total = tl.full((BT,), float("inf"), tl.float32), tl.zeros((BT,), tl.float32)
    mean, whole = tl.zeros((BT,), tl.float32), tl.zeros((BT,), tl.float32)
    for start in range(0, count, BT):
        at, inside = partial + row.to(tl.int64) * count + start + lane, start + lane < count
        other = tl.load(at, inside, float("-inf"))
        higher = tl.maximum(top, other)
        base = tl.where(higher == float("-inf"), 0.0, higher)
        keep, gain = tl.exp(top - base), tl.exp(other - base)
        total = total * keep + tl.load(at + 2 * field, inside, 0.0) * gain
        mean = mean * keep + tl.load(at + 3 * field, inside, 0.0) * gain
        number = tl.where(other > top, tl.load(at + field, inside, float("inf")), number)
        top = higher
        other = tl.load(at + 4 * field, inside, float("-inf"))
        higher = tl.maximum(whole_top, other)
        base = tl.where(higher == float("-inf"), 0.0, higher)
        whole = whole * tl.exp(whole_top - base) + tl.load(at + 5 * field, inside, 0.0) * tl.exp(other - base)
        whole_top = higher
    best = tl.max(top, 0)
    gain = tl.exp(top - tl.where(best == float("-inf"), 0.0, best))
    total, mean = tl.sum(total * gain, 0), tl.sum(mean * gain, 0)
    place = tl.min(tl.where(top == best, number, float("inf")), 0)
    log_sum = best + tl.log(total)
    highest = tl.max(whole_top, 0)
    tl.store(token + row, tl.where(place < float("inf"), place, 0.0).to(tl.int32))  # a row of NaN has no best token
    tl.store(figures + row * 4, best)
    tl.store(figures + row * 4 + 1, log_sum)
    tl.store(figures + row * 4 + 2, highest + tl.log(tl.sum(whole * tl.exp(whole_top - highest), 0)))
    tl.store(figures + row * 4 + 3, log_sum - mean / total)


def answers(
    hidden: Tensor,
    matrix: Matrix,
    bits: Tensor,
    lists: Tensor,
    scale: float = 1.0,
    never: int = -1,
    keeps: bool = False,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """See `reference.answers`."""
    hidden, device = hidden.contiguous(), hidden.device
    (rows, channels), vocabulary = hidden.shape, matrix.outputs
    high, wide, deep = _tiles(rows, hidden.element_size())
    count = triton.cdiv(vocabulary, wide)
    partial = torch.empty(FIELDS, rows, count, device=device)
    kept = torch.empty(rows, vocabulary, device=device) if keeps else None
    token, figures = torch.empty(rows, dtype=torch.int32, device=device), torch.empty(rows, 4, device=device)
    _tell[(triton.cdiv(rows, high), count)](
        hidden, matrix.weight, bits, lists, partial, kept, rows, channels, vocabulary, bits.shape[1], scale, never,
        high, wide, deep, **options(device, 8 if high > 16 else 4, 4),
    )  # fmt: skip
    _join[(rows,)](partial, token, figures, rows, count, 256, **options(device, 4, 1))
    return token, figures, kept


def _tiles(rows: int, bytes_: int) -> tuple[int, int, int]:
    """Rows and words of a tile of logits, and channels at a time, few enough for half of the registers."""
    high = power(rows, most=64)
    return high, 128 if high < 64 else 64, 64 if bytes_ == 2 else 32
