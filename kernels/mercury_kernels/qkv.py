"""Queries, keys and values of a layer: norm, projection, norms of heads, rotation and the write into the keys.

qkv = norm(x) W^T + b; heads of queries and keys pass a norm of their own if the model has them. Channels i and i + E of
a head are rotated by the angle a of the row's position: (l cos a - r sin a, r cos a + l sin a). arXiv 2104.09864.

One kernel streams the weights once. A program owns channel pairs of one head, so it has both halves of every rotation
in registers; with norms of heads it owns a whole one.

Dimensions: M rows, C channels, H key heads, HQ query heads, D head width, E = D/2, T keys.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from mercury_kernels.launch import dot, multiprocessors, options, power, stages
from mercury_kernels.linear import _lowered, _raised, _weights, ranks
from mercury_kernels.operands import Matrix, Rows


@triton.jit
def _put(base, at, pair, E, left, right, inside):
    """Store both halves of rows at the offsets `at` [BM]."""
    to = base + at[:, None] + pair[None, :]
    tl.store(to, left.to(base.dtype.element_ty), inside)
    tl.store(to + E, right.to(base.dtype.element_ty), inside)


@triton.jit(do_not_specialize=["M"])
def _project_qkv(
    x, norm, weight, scales, bias, head_norms, adapter_down, adapter_up, out, own,
    cos, sin, positions, context, keys, values,
    eps, M, C, E, stride, HQ, H,
    RANK: tl.constexpr, BR: tl.constexpr, BM: tl.constexpr, BE: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(E, BE)
    head = tl.program_id(1) // tiles
    pair = tl.program_id(1) % tiles * BE + tl.arange(0, BE)
    m = tl.program_id(0) * BM + tl.arange(0, BM)  # tiles of rows are neighbours, so they share the weights in the cache
    c = tl.arange(0, BC)
    rows = x + m.to(tl.int64)[:, None] * C
    upper = weight + (head * 2 * E + tl.minimum(pair, E - 1)).to(tl.int64) * C
    column, columns = head * 2 * E + pair, (HQ + 2 * H) * 2 * E
    left, right = tl.zeros((BM, BE), tl.float32), tl.zeros((BM, BE), tl.float32)
    squares, low = tl.zeros((BM,), tl.float32), tl.zeros((BM, BR), tl.float32)
    for start in range(0, C, BC):
        at = start + c
        value = tl.load(rows + at[None, :], (m < M)[:, None] & (at < C)[None, :], 0.0)
        wide = value.to(tl.float32)
        squares += tl.sum(wide * wide, 1)
        value = (wide * tl.load(norm + at, at < C, 0.0).to(tl.float32)[None, :]).to(value.dtype)
        w = _weights(upper, scales, column, columns, pair < E, start, C, value.dtype, BE, BC)
        left = dot(value, tl.trans(w), left)
        w = _weights(upper + E * C, scales, column + E, columns, pair < E, start, C, value.dtype, BE, BC)
        right = dot(value, tl.trans(w), right)
        if RANK:
            low = _lowered(low, value, adapter_down, at, C, C, RANK, BR)
    if RANK:
        rows_of = adapter_up + head.to(tl.int64) * 2 * E * RANK
        left = _raised(left, low, rows_of, pair, E, RANK, BR)
        right = _raised(right, low, rows_of + E.to(tl.int64) * RANK, pair, E, RANK, BR)
    rms = tl.rsqrt(squares / C + eps)[:, None]
    left, right = left * rms, right * rms
    valid, inside = m < M, (m < M)[:, None] & (pair < E)[None, :]
    if bias is not None:
        left += tl.load(bias + column, pair < E, 0.0).to(tl.float32)[None, :]
        right += tl.load(bias + column + E, pair < E, 0.0).to(tl.float32)[None, :]
    slot = (tl.load(context) + m) * 2 * E
    if head >= HQ + H:
        _put(values, (head - HQ - H).to(tl.int64) * stride + slot, pair, E, left, right, inside)
    else:
        if head_norms is not None:
            rms = tl.rsqrt((tl.sum(left * left, 1) + tl.sum(right * right, 1)) / (2 * E) + eps)[:, None]
            scale = head_norms + tl.where(head < HQ, 0, 2 * E) + pair
            left = left * rms * tl.load(scale, pair < E, 0.0).to(tl.float32)[None, :]
            right = right * rms * tl.load(scale + E, pair < E, 0.0).to(tl.float32)[None, :]
        at = tl.load(positions + m, valid, 0)[:, None] * 2 * E + pair[None, :]
        turn, lift = tl.load(cos + at, inside, 0.0), tl.load(sin + at + E, inside, 0.0)
        ahead, behind = left * turn - right * lift, right * turn + left * lift
        if head < HQ:
            _put(out, (m * HQ + head).to(tl.int64) * 2 * E, pair, E, ahead, behind, inside)
        else:
            _put(own, (m * H + head - HQ).to(tl.int64) * 2 * E, pair, E, left, right, inside)
            _put(keys, (head - HQ).to(tl.int64) * stride + slot, pair, E, ahead, behind, inside)


def project_qkv(
    x: Tensor,
    norm: Tensor,
    eps: float,
    matrix: Matrix,
    head_norms: Tensor | None,
    rows: Rows,
    keys: Tensor,
    values: Tensor,
) -> tuple[Tensor, Tensor]:
    """See `reference.project_qkv`."""
    x = x.contiguous()
    heads, _, width = keys.shape
    queries, pairs = matrix.outputs // width - 2 * heads, width // 2
    out, own = x.new_empty(len(x), queries, width), x.new_empty(len(x), heads, width)
    is_coded = matrix.scales is not None
    high = power(len(x), most=32 if is_coded else 64)  # see `linear.tiles`
    block = power(pairs) if head_norms is not None else _pairs(x.device, pairs, queries + 2 * heads)
    grid = (triton.cdiv(len(x), high), (queries + 2 * heads) * triton.cdiv(pairs, block))
    depth = 128 if x.element_size() == 2 else 32
    rank, wide = ranks(matrix)
    added = wide * (rank > 0)
    step = int(depth * ((high + 1 + added) * x.element_size() + 2 * block * matrix.weight_bytes))
    warps = 8 if high * (2 * block + added) > (2048 if is_coded else 4096) else 4
    _project_qkv[grid](
        x, norm, matrix.weight, matrix.scales, matrix.bias, head_norms, matrix.down, matrix.up, out, own,
        rows.cos, rows.sin, rows.position, rows.context, keys, values, eps, len(x), x.shape[1], pairs, keys.stride(0),
        queries, heads, rank, wide, high, block, depth, **options(x.device, warps, stages(x.device, 4, step)),
    )  # fmt: skip
    return out, own


def _pairs(device: torch.device, pairs: int, heads: int) -> int:
    """Channel pairs per program, few enough that every multiprocessor gets work."""
    block = power(pairs)
    while block > 16 and heads * triton.cdiv(pairs, block) < multiprocessors(device):
        block //= 2
    return block
