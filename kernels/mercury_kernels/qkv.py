"""Queries, keys and values of a layer: norm, projection, rotation and cache write.

qkv = norm(x) W^T + b. Channels i and i + E of a head are rotated by the angle a of the row's position:
(l cos a - r sin a, r cos a + l sin a). arXiv 2104.09864.

Few rows run as one kernel that streams the weights once; many rows go through a library matrix product, then
`rotate_and_store`. A program owns channel pairs of one head, so it has both halves of every rotation in registers.

Dimensions: M rows, C channels, H key heads, HQ query heads, D head width, E = D/2, N pages, P tokens per page.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from mercury_kernels import reference
from mercury_kernels.launch import dot, guarded, multiprocessors, options, power, stages
from mercury_kernels.linear import LARGE, linear
from mercury_kernels.operands import Matrix, RowPositions


@triton.jit
def _turn(
    left: tl.tensor,
    right: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    row: tl.tensor,
    pair: tl.tensor,
    inside: tl.tensor,
    E: tl.tensor,
) -> tl.tensor:
    """Both halves, rotated by the angles in rows [BM] and pairs [BE] of the table."""
    at = row[:, None] * E + pair[None, :]
    c, s = tl.load(cos + at, inside, 0.0), tl.load(sin + at, inside, 0.0)
    return left * c - right * s, right * c + left * s


@triton.jit
def _put(
    base: tl.tensor,
    at: tl.tensor,
    pair: tl.tensor,
    E: tl.tensor,
    left: tl.tensor,
    right: tl.tensor,
    inside: tl.tensor,
) -> None:
    """Store both halves of rows at the offsets `at` [BM]."""
    to = base + at[:, None] + pair[None, :]
    tl.store(to, left.to(base.dtype.element_ty), inside)
    tl.store(to + E, right.to(base.dtype.element_ty), inside)


@triton.jit
def _finish(
    left: tl.tensor,
    right: tl.tensor,
    head: tl.tensor,
    m: tl.tensor,
    pair: tl.tensor,
    out: tl.tensor,
    positions: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    slots: tl.tensor,
    M: tl.tensor,
    E: tl.tensor,
    P: tl.tensor,
    HQ: tl.tensor,
    H: tl.tensor,
) -> None:
    """Rotation and stores for one head's channel pairs, float32 [BM,BE] halves."""
    valid = m < M
    inside = valid[:, None] & (pair < E)[None, :]
    if head < HQ + H:
        left, right = _turn(left, right, cos, sin, tl.load(positions + m, valid, 0), pair, inside, E)
    if head < HQ:
        _put(out, (m * HQ + head).to(tl.int64) * 2 * E, pair, E, left, right, inside)
    else:
        slot = tl.load(slots + m, valid, 0).to(tl.int64)
        kind = (head - HQ) % H
        at = ((slot // P * H + kind) * P + slot % P) * 2 * E
        if head < HQ + H:
            _put(keys, at, pair, E, left, right, inside)
        else:
            _put(values, at, pair, E, left, right, inside)


@triton.jit(do_not_specialize=["M"])
def _rotate_and_store(
    qkv: tl.tensor,
    out: tl.tensor,
    positions: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    slots: tl.tensor,
    M: tl.tensor,
    E: tl.tensor,
    P: tl.tensor,
    HQ: tl.tensor,
    H: tl.tensor,
    BM: tl.constexpr,
    BE: tl.constexpr,
) -> None:
    head = tl.program_id(0)
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    pair = tl.arange(0, BE)
    at = (m.to(tl.int64) * (HQ + 2 * H) + head)[:, None] * 2 * E + pair[None, :]
    inside = (m < M)[:, None] & (pair < E)[None, :]
    left = tl.load(qkv + at, inside, 0.0).to(tl.float32)
    right = tl.load(qkv + at + E, inside, 0.0).to(tl.float32)
    _finish(left, right, head, m, pair, out, positions, cos, sin, keys, values, slots, M, E, P, HQ, H)


@triton.jit(do_not_specialize=["M"])
def _project_qkv(
    x: tl.tensor,
    norm: tl.tensor,
    weight: tl.tensor,
    bias: tl.tensor,
    out: tl.tensor,
    positions: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    slots: tl.tensor,
    eps: tl.tensor,
    M: tl.tensor,
    C: tl.tensor,
    E: tl.tensor,
    P: tl.tensor,
    HQ: tl.tensor,
    H: tl.tensor,
    HAS_BIAS: tl.constexpr,
    BM: tl.constexpr,
    BE: tl.constexpr,
    BC: tl.constexpr,
) -> None:
    tiles = tl.cdiv(E, BE)
    head = tl.program_id(1) // tiles
    pair = tl.program_id(1) % tiles * BE + tl.arange(0, BE)
    m = tl.program_id(0) * BM + tl.arange(0, BM)  # tiles of rows are neighbours, so they share the weights in the cache
    c = tl.arange(0, BC)
    rows = x + m.to(tl.int64)[:, None] * C
    upper = weight + (head * 2 * E + tl.minimum(pair, E - 1)).to(tl.int64) * C
    left, right = tl.zeros((BM, BE), tl.float32), tl.zeros((BM, BE), tl.float32)
    squares = tl.zeros((BM,), tl.float32)
    for start in range(0, C, BC):
        at = start + c
        value = tl.load(rows + at[None, :], (m < M)[:, None] & (at < C)[None, :], 0.0)
        wide = value.to(tl.float32)
        squares += tl.sum(wide * wide, 1)
        value = (wide * tl.load(norm + at, at < C, 0.0).to(tl.float32)[None, :]).to(value.dtype)
        shape = (pair < E)[:, None] & (at < C)[None, :]
        w = tl.load(upper[:, None] + at[None, :], shape, 0.0)
        left = dot(value, tl.trans(w), left)
        w = tl.load(upper[:, None] + E * C + at[None, :], shape, 0.0)
        right = dot(value, tl.trans(w), right)
    rms = tl.rsqrt(squares / C + eps)[:, None]
    left, right = left * rms, right * rms
    column = head * 2 * E + pair
    if HAS_BIAS:
        left += tl.load(bias + column, pair < E, 0.0).to(tl.float32)[None, :]
        right += tl.load(bias + column + E, pair < E, 0.0).to(tl.float32)[None, :]
    _finish(left, right, head, m, pair, out, positions, cos, sin, keys, values, slots, M, E, P, HQ, H)


@guarded(reference.rotate_and_store)
def rotate_and_store(qkv: Tensor, places: RowPositions, keys: Tensor, values: Tensor, slots: Tensor) -> Tensor:
    """Rotated queries [M,HQ,D] from qkv [M,(HQ+2H)*D]; stores the rows' keys and values in the cache."""
    qkv = qkv.contiguous()
    heads, size, width = keys.shape[1:]
    queries = qkv.shape[1] // width - 2 * heads
    out = qkv.new_empty(len(qkv), queries, width)
    block = power(width // 2)
    rows = min(power(len(qkv)), max(1, 2048 // block))
    _rotate_and_store[(queries + 2 * heads, triton.cdiv(len(qkv), rows))](
        qkv, out, places.positions, places.cos, places.sin, keys, values, slots, len(qkv), width // 2, size, queries,
        heads, rows, block, **options(qkv.device, 8, 1),
    )  # fmt: skip
    return out


@guarded(reference.project_qkv)
def project_qkv(
    x: Tensor,
    norm: Tensor,
    eps: float,
    matrix: Matrix,
    places: RowPositions,
    keys: Tensor,
    values: Tensor,
    slots: Tensor,
) -> Tensor:
    """RMSNorm of x [M,C], projection and `rotate_and_store`; fast for up to about 64 rows.

    One kernel; two where the tiles of one would read too many bytes of rows.
    """
    x = x.contiguous()
    heads, size, width = keys.shape[1:]
    queries = matrix.outputs // width - 2 * heads
    if reads_many_rows(x.device, len(x), x.shape[1], matrix.outputs, width):
        return rotate_and_store(linear(x, matrix, norm, eps), places, keys, values, slots)
    out = x.new_empty(len(x), queries, width)
    rows, block = power(len(x), most=64), _pairs(x.device, width // 2, queries + 2 * heads)
    grid = (triton.cdiv(len(x), rows), (queries + 2 * heads) * triton.cdiv(width // 2, block))
    step = (rows + 2 * block + 1) * _depth(x) * x.element_size()
    warps = 8 if 2 * rows * block > 4096 else 4
    _project_qkv[grid](
        x, norm, matrix.weight, x if matrix.bias is None else matrix.bias, out, places.positions, places.cos,
        places.sin, keys, values, slots, eps, len(x), x.shape[1], width // 2, size, queries, heads,
        matrix.bias is not None, rows, block, _depth(x), **options(x.device, warps, stages(x.device, 4, step)),
    )  # fmt: skip
    return out


def reads_many_rows(device: torch.device, rows: int, inputs: int, outputs: int, width: int) -> bool:
    """Whether tiles of a large matrix are so narrow that they read more than half as many rows as weights.

    No sum is split over programs here, so tiles get narrow until every multiprocessor has one.
    """
    return min(inputs, outputs) >= LARGE and power(rows, most=64) > _pairs(device, width // 2, outputs // width)


def _pairs(device: torch.device, pairs: int, heads: int) -> int:
    """Channel pairs per program, few enough that every multiprocessor gets work."""
    block = power(pairs)
    while block > 16 and heads * triton.cdiv(pairs, block) < multiprocessors(device):
        block //= 2
    return block


def _depth(x: Tensor) -> int:
    return 128 if x.element_size() == 2 else 32
