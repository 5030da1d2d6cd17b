"""Torch twins of all operations: the definitions that faster implementations are tested against.

Dimensions: B batch, H key heads, G query heads per key head, S queries, T keys, D head width, C channels.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from mercury_kernels.operands import Matrix, RowPositions, Table

LEAST_SURPRISE_LEFT_OUT = 88.0
"""Nats from which on a token has no part in an entropy: its probability is 0 in float32."""

Segment = tuple[Tensor, Tensor, Tensor, Tensor | None]
"""Queries [B,H,GS,D] rotated for this segment, keys [B,H,T,D], values [B,H,T,D], bias [B|1,1,GS|1,T] or None."""


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the last dimension; at least float32 inside. arXiv 1910.07467."""
    return F.rms_norm(x, weight.shape, weight, eps)


def rotary_angles(
    positions: Tensor, head_width: int, theta: float, factors: Sequence[float] = ()
) -> tuple[Tensor, Tensor]:
    """Cosines and sines float32 [...,D] for integer positions [...], which may be negative. arXiv 2104.09864.

    `factors` [D/2] divide the frequencies.
    """
    frequency = theta ** (-torch.arange(0, head_width, 2, device=positions.device).float() / head_width)
    if factors:
        frequency = frequency / torch.tensor(factors, device=positions.device)
    angle = positions.float()[..., None] * frequency
    angle = torch.cat((angle, angle), -1)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding in halves: x [...,T,D], cos and sin [T,D] or broadcastable."""
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * cos.to(x.dtype) + turned * sin.to(x.dtype)


def segmented_attention(segments: list[Segment]) -> Tensor:
    """Attention [B,H,GS,D] over the keys of all segments together; each segment has queries rotated for its frame.

    A bias of -inf hides a key; every query must see at least one key.
    """
    scale = segments[0][0].shape[-1] ** -0.5
    scores = [_scores(q, k, bias, scale) for q, k, _, bias in segments]
    weights = torch.cat(scores, -1).softmax(-1).to(segments[0][0].dtype)
    parts = weights.split([s.shape[-1] for s in scores], -1)
    out = _weighted(parts[0], segments[0][2])
    for part, (_, _, v, _) in zip(parts[1:], segments[1:], strict=True):
        out = out + _weighted(part, v)
    return out


def _weighted(weights: Tensor, v: Tensor) -> Tensor:
    """weights [...,S,T] @ v [...,T,D]; of one key without a product, which torch 2.14 compiles with Triton on a GPU."""
    return weights * v if v.shape[-2] == 1 else weights @ v


def _scores(q: Tensor, k: Tensor, bias: Tensor | None, scale: float) -> Tensor:
    scores = (q @ k.transpose(-1, -2)).float() * scale
    return scores if bias is None else scores + bias


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of queries [B,H,GT,D] to keys and values [B,H,T,D] of the same T tokens, none of them later."""
    batch, heads, tokens, width = k.shape
    wide = q.view(batch, -1, tokens, width)
    out = F.scaled_dot_product_attention(wide, k, v, is_causal=True, enable_gqa=True)
    return out.view(batch, heads, -1, width)


def swiglu(gate_up: Tensor) -> Tensor:
    """silu(gate) * up for the two halves of the last dimension. arXiv 2002.05202."""
    gate, up = gate_up.chunk(2, -1)
    return F.silu(gate) * up


def rotary_table(positions: int, head_width: int, theta: float, device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosines and sines float32 [positions,D/2] of the positions from 0 on."""
    cos, sin = rotary_angles(torch.arange(positions, device=device), head_width, theta)
    return cos[:, : head_width // 2].contiguous(), sin[:, : head_width // 2].contiguous()


def rotate_and_store(qkv: Tensor, places: RowPositions, keys: Tensor, values: Tensor, slots: Tensor) -> Tensor:
    """Rotated queries [M,H*G,D] from qkv [M,(H*G+2H)*D]; stores the rows' keys and values in pages [N,H,P,D].

    slots int32 [M] are page * P + offset; rows that must leave nothing share a scrap page.
    """
    rows, heads, width = qkv.shape[0], keys.shape[1], keys.shape[3]
    wide = qkv.view(rows, -1, width)
    q, k, v = wide.split([wide.shape[1] - 2 * heads, heads, heads], 1)
    page, place = (slots // keys.shape[2]).long(), (slots % keys.shape[2]).long()
    keys[page, :, place] = _turned(k, places).to(keys.dtype)
    values[page, :, place] = v.to(values.dtype)
    return _turned(q, places)


def _turned(x: Tensor, places: RowPositions) -> Tensor:
    """x [M,h,D], rotated in float32."""
    row = places.positions.long()
    cos, sin = places.cos[row][:, None], places.sin[row][:, None]
    left, right = x.float().chunk(2, -1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), -1).to(x.dtype)


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
    """RMSNorm of x [M,C], projection and `rotate_and_store`."""
    return rotate_and_store(linear(x, matrix, norm, eps), places, keys, values, slots)


def linear(
    x: Tensor,
    matrix: Matrix,
    norm: Tensor | None = None,
    eps: float = 0.0,
    residual: Tensor | None = None,
    gated: bool = False,
) -> Tensor:
    """x [M,in] times the matrix, with an optional norm before and optional SwiGLU and residual [M,out] after it."""
    x = x if norm is None else rms_norm(x, norm, eps)
    y = F.linear(x, matrix.weight.to(x.dtype))
    y = y if matrix.bias is None else y + matrix.bias.to(y.dtype)
    y = swiglu(y) if gated else y
    return y if residual is None else y + residual


def paged_attention(q: Tensor, keys: Tensor, values: Tensor, table: Table) -> Tensor:
    """Attention [M,H*G*D] over all visible keys together; q [M,H*G,D], keys and values [N,H,P,D].

    A row that sees no key gets zeros.
    """
    batch = table.pages.shape[0]
    heads, size, width = keys.shape[1:]
    q = q.view(batch, -1, heads, q.shape[1] // heads, width).permute(0, 2, 3, 1, 4).float()
    k, v = (t[table.pages.long()].transpose(1, 2).flatten(2, 3)[:, :, None].float() for t in (keys, values))
    scores = q @ k.transpose(-1, -2) * width**-0.5  # [B,H,G,R,W*P]
    seen = _visible(table, q.shape[3], size)[:, None, None]
    weights = scores.masked_fill(~seen, float("-inf")).softmax(-1).nan_to_num(0.0)
    out = weights @ v.masked_fill(~seen.any(-2)[..., None], 0.0)
    return out.permute(0, 3, 1, 2, 4).flatten(0, 1).flatten(1).to(keys.dtype)


def _visible(table: Table, rows: int, size: int) -> Tensor:
    """bool [B,R,W*P]: the keys that each row sees."""
    columns, device = table.pages.shape[1], table.pages.device
    column = torch.arange(columns, device=device).repeat_interleave(size)
    place = torch.arange(size, device=device).repeat(columns)
    seen = (place < table.counts[:, column]) & (column < table.ends[:, None])
    own = (column - table.own[:, None]) * size + place
    return seen[:, None] & ((own < 0)[:, None] | (own[:, None] < table.limits.view(-1, rows, 1)))


def answers(hidden: Tensor, matrix: Matrix, bits: Tensor, lists: Tensor, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """The likeliest allowed token int32 [W] of hidden [W,C] over matrix [V,C], and its figures float32 [W,4].

    The logits, times `scale`, are not stored. See `figures`.
    """
    return figures(F.linear(hidden, matrix.weight).float() * scale, bits, lists)


def figures(logits: Tensor, bits: Tensor, lists: Tensor) -> tuple[Tensor, Tensor]:
    """The likeliest allowed token int32 [W] of logits float32 [W,V], and four figures float32 [W,4].

    They are its logit, the logarithms of the sums of exp(logit) over the allowed tokens and over all, and the entropy
    of the allowed ones in nats; NaN for a row without an allowed token. bits int32 [N,ceil(V/32)]: bit i % 32 of word
    i // 32 bans token i; lists int32 [W]: the list of each row, or -1.
    """
    allowed = logits.masked_fill(banned(logits.shape[1], bits, lists), float("-inf"))
    logit, token = allowed.max(-1)
    log_sum = allowed.logsumexp(-1)
    surprise = (log_sum[:, None] - allowed).clamp(max=LEAST_SURPRISE_LEFT_OUT)
    entropy = (allowed.softmax(-1) * surprise).sum(-1)
    return token.int(), torch.stack((logit, log_sum, logits.logsumexp(-1), entropy), -1)


def banned(vocabulary: int, bits: Tensor, lists: Tensor) -> Tensor:
    """bool [W,V]: the tokens that the list of each row bans."""
    token = torch.arange(vocabulary, device=bits.device)
    if not len(bits):
        return torch.zeros(len(lists), vocabulary, dtype=torch.bool, device=bits.device)
    words = bits[lists.clamp(min=0).long()][:, token // 32]
    return ((words >> (token % 32)) & 1).bool() & (lists >= 0)[:, None]
