"""Verification head: the best token after every row and its probability, and how many drafts of a request are right.

With p the model's distribution over the vocabulary, q the pairs' and s their share, a row's is r = (1 - s) p + s q. Of
banned tokens it keeps nothing; the end marker has r of the stop tokens together, and the best of all is decided over
the sum of what is left. No logits are stored: a program computes those of a tile of the vocabulary and keeps six
numbers per row; a second kernel, a program per row, joins the tiles and computes the logits of the pairs' tokens again.
Its last program counts the drafts that are right.

Dimensions: B requests, R rows each, M = B*R, C channels, V vocabulary, K lists of tokens, P pairs.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from mercury_kernels import reference
from mercury_kernels.counters import counters
from mercury_kernels.launch import dot, guarded, options, power
from mercury_kernels.operands import Drafts, Matrix

FIELDS = 6


@triton.jit
def _products(
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
def _opinions(
    x: tl.tensor,
    norm: tl.tensor,
    weight: tl.tensor,
    lists: tl.tensor,
    ban: tl.tensor,
    stop: tl.tensor,
    partial: tl.tensor,
    M: tl.tensor,
    C: tl.tensor,
    V: tl.tensor,
    eps: tl.tensor,
    HAS_NORM: tl.constexpr,
    BM: tl.constexpr,
    BV: tl.constexpr,
    BC: tl.constexpr,
) -> None:
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    v = tl.program_id(1) * BV + tl.arange(0, BV)
    logits = _products(x, norm, weight, m, v, M, C, V, eps, HAS_NORM, BM, BV, BC)
    logits = tl.where((v < V)[None, :], logits, float("-inf"))
    inside = (m < M)[:, None] & (v < V)[None, :]
    listed = tl.load(ban + m, m < M, 0).to(tl.int64)[:, None]
    allowed = tl.load(lists + listed * V + v[None, :], inside, 1) == 0
    listed = tl.load(stop + m, m < M, 0).to(tl.int64)[:, None]
    ends = tl.load(lists + listed * V + v[None, :], inside, 0) != 0
    top = tl.max(logits, 1)
    probability = tl.exp(logits - top[:, None])
    best, place = tl.max(tl.where(allowed, logits, float("-inf")), 1, return_indices=True)
    count = tl.num_programs(1)
    out = partial + m.to(tl.int64) * count + tl.program_id(1)
    field = M.to(tl.int64) * count
    tl.store(out, top, m < M)
    tl.store(out + field, best, m < M)
    tl.store(out + 2 * field, (tl.program_id(1) * BV + place).to(tl.float32), m < M)  # exact below 2^24
    tl.store(out + 3 * field, tl.sum(probability, 1), m < M)
    tl.store(out + 4 * field, tl.sum(tl.where(allowed, probability, 0.0), 1), m < M)
    tl.store(out + 5 * field, tl.sum(tl.where(ends, probability, 0.0), 1), m < M)


@triton.jit
def _logits_of(
    tokens: tl.tensor,
    inside: tl.tensor,
    x: tl.tensor,
    norm: tl.tensor,
    weight: tl.tensor,
    C: tl.tensor,
    eps: tl.tensor,
    HAS_NORM: tl.constexpr,
    BP: tl.constexpr,
    BC: tl.constexpr,
) -> tl.tensor:
    """Logits [BP] of a few tokens for the row at x."""
    sums, squares = tl.zeros((BP, BC), tl.float32), tl.zeros((BC,), tl.float32)
    rows = weight + tokens.to(tl.int64)[:, None] * C
    for start in range(0, C, BC):
        c = start + tl.arange(0, BC)
        value = tl.load(x + c, c < C, 0.0)
        if HAS_NORM:
            wide = value.to(tl.float32)
            squares += wide * wide
            value = (wide * tl.load(norm + c, c < C, 0.0).to(tl.float32)).to(value.dtype)
        w = tl.load(rows + c[None, :], inside[:, None] & (c < C)[None, :], 0.0)
        sums += w.to(tl.float32) * value.to(tl.float32)[None, :]
    logits = tl.sum(sums, 1)
    if HAS_NORM:
        logits *= tl.rsqrt(tl.sum(squares, 0) / C + eps)
    return logits


@triton.jit(do_not_specialize=["M", "V", "count", "end_id"])
def _accept(
    x: tl.tensor,
    norm: tl.tensor,
    weight: tl.tensor,
    lists: tl.tensor,
    partial: tl.tensor,
    token: tl.tensor,
    probability: tl.tensor,
    accepted: tl.tensor,
    draft: tl.tensor,
    first: tl.tensor,
    ban: tl.tensor,
    stop: tl.tensor,
    share: tl.tensor,
    pair_first: tl.tensor,
    pair_last: tl.tensor,
    pair_token: tl.tensor,
    pair_share: tl.tensor,
    counter: tl.tensor,
    M: tl.tensor,
    C: tl.tensor,
    V: tl.tensor,
    count: tl.tensor,
    end_id: tl.tensor,
    eps: tl.tensor,
    HAS_NORM: tl.constexpr,
    R: tl.constexpr,
    BT: tl.constexpr,
    BP: tl.constexpr,
    BC: tl.constexpr,
) -> None:
    row = tl.program_id(0)
    lane = tl.arange(0, BT)
    field = M.to(tl.int64) * count
    top, best = tl.full((BT,), float("-inf"), tl.float32), tl.full((BT,), float("-inf"), tl.float32)
    number, whole = tl.full((BT,), float("inf"), tl.float32), tl.zeros((BT,), tl.float32)
    content, ending = tl.zeros((BT,), tl.float32), tl.zeros((BT,), tl.float32)
    for start in range(0, count, BT):
        at, inside = partial + row.to(tl.int64) * count + start + lane, start + lane < count
        other = tl.load(at, inside, float("-inf"))
        higher = tl.maximum(top, other)
        base = tl.where(higher == float("-inf"), 0.0, higher)
        keep, gain = tl.exp(top - base), tl.exp(other - base)
        whole = whole * keep + tl.load(at + 3 * field, inside, 0.0) * gain
        content = content * keep + tl.load(at + 4 * field, inside, 0.0) * gain
        ending = ending * keep + tl.load(at + 5 * field, inside, 0.0) * gain
        rival = tl.load(at + field, inside, float("-inf"))
        number = tl.where(rival > best, tl.load(at + 2 * field, inside, float("inf")), number)
        best, top = tl.maximum(best, rival), higher
    base = tl.max(top, 0)
    gain = tl.exp(top - base)
    whole = tl.sum(whole * gain, 0)
    total = base + tl.log(whole)
    mine = 1.0 - tl.load(share + row)
    content, ending = mine * tl.sum(content * gain, 0) / whole, mine * tl.sum(ending * gain, 0) / whole
    leading = tl.max(best, 0)
    place = tl.min(tl.where(best == leading, number, float("inf")), 0)
    found = tl.where(place < float("inf"), place, 0.0).to(tl.int32)  # a row of NaN has no best token
    likely = mine * tl.exp(leading - total)
    banned, stops = tl.load(ban + row).to(tl.int64) * V, tl.load(stop + row).to(tl.int64) * V
    last = tl.load(pair_last + row)
    for start in range(tl.load(pair_first + row), last, BP):
        pair = start + tl.arange(0, BP)
        inside = pair < last
        tokens = tl.load(pair_token + pair, inside, 0)
        logits = _logits_of(tokens, inside, x + row.to(tl.int64) * C, norm, weight, C, eps, HAS_NORM, BP, BC)
        more = (1.0 - mine) * tl.load(pair_share + pair, inside, 0.0)
        allowed = inside & (tl.load(lists + banned + tokens, inside, 1) == 0)
        content += tl.sum(tl.where(allowed, more, 0.0), 0)
        ending += tl.sum(tl.where(inside & (tl.load(lists + stops + tokens, inside, 0) != 0), more, 0.0), 0)
        mixed = tl.where(allowed, mine * tl.exp(logits - total) + more, -1.0)
        leading = tl.max(mixed, 0)
        place_of = tl.min(tl.where(mixed == leading, tokens, 2147483647), 0)
        found = tl.where(leading > likely, place_of, found)
        likely = tl.maximum(likely, leading)
    ends = ending > likely
    tl.store(token + row, tl.where(ends, end_id, found))
    tl.store(probability + row, tl.where(ends, ending, likely) / (content + ending))
    batch = row // R
    tl.debug_barrier()
    if tl.atomic_add(counter + batch, 1, sem="acq_rel") == R - 1:
        r = tl.arange(0, R)
        begin = tl.load(first + batch)
        decided = tl.load(token + batch * R + r, cache_modifier=".cg")
        wrong = (r >= begin) & (decided != tl.load(draft + batch * R + r))
        tl.store(accepted + batch, tl.min(tl.where(wrong, r, R), 0) - begin)
        tl.store(counter + batch, 0)


@guarded(reference.accept)
def accept(
    hidden: Tensor,
    matrix: Matrix,
    lists: Tensor,
    drafts: Drafts,
    end_id: int,
    norm: Tensor | None = None,
    eps: float = 0.0,
) -> None:
    """Decide what follows every row of hidden [B*R,C] over matrix [V,C], and how many drafts are right; in place.

    R is a power of two.
    """
    hidden, device = hidden.contiguous(), hidden.device
    (rows, channels), vocabulary, numbers = hidden.shape, matrix.outputs, lists.view(torch.uint8)
    high, wide, deep = _tiles(rows, hidden.element_size())
    count = triton.cdiv(vocabulary, wide)
    partial = torch.empty(FIELDS, rows, count, device=device)
    weight, has_norm = hidden if norm is None else norm, norm is not None
    _opinions[(triton.cdiv(rows, high), count)](
        hidden, weight, matrix.weight, numbers, drafts.ban, drafts.stop, partial, rows, channels, vocabulary,
        eps, has_norm, high, wide, deep, **options(device, 8 if high == 64 else 4, 4),
    )  # fmt: skip
    _accept[(rows,)](
        hidden, weight, matrix.weight, numbers, partial, drafts.token, drafts.probability, drafts.accepted,
        drafts.draft, drafts.first, drafts.ban, drafts.stop, drafts.share, drafts.pair_first, drafts.pair_last,
        drafts.pair_token, drafts.pair_share, counters(device), rows, channels, vocabulary, count, end_id, eps,
        has_norm, drafts.token.shape[1], 256, 16, 128, **options(device, 4, 1),
    )  # fmt: skip


def _tiles(rows: int, bytes_: int) -> tuple[int, int, int]:
    """Rows and words of a tile of logits, and channels at a time, few enough for half of the registers."""
    high = power(rows, most=64)
    return high, 128 if high < 64 else 64, 64 if bytes_ == 2 else 32
