"""Torch twins of all operations: the definitions that faster implementations are tested against.

Dimensions: B batch, H key heads, G query heads per key head, S queries, T keys, D head width, C channels.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from mercury_kernels.cpu.blocks import GROUP
from mercury_kernels.operands import Matrix, RowPlaces, Visibility

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


def project_qkv(
    x: Tensor,
    norm: Tensor,
    eps: float,
    matrix: Matrix,
    head_norms: Tensor | None,
    places: RowPlaces,
    keys: Tensor,
    values: Tensor,
) -> tuple[Tensor, Tensor]:
    """Queries [M,H*G,D], rotated, and keys [M,H,D], not rotated: RMSNorm of x [M,C] times the matrix.

    The rows' rotated keys and their values are stored in keys and values [H,T,D]. `head_norms` [2,D]: norms of the
    heads of queries and keys.
    """
    heads, _, width = keys.shape
    wide = linear(x, matrix, norm, eps).view(len(x), -1, width)
    q, k, v = wide.split([wide.shape[1] - 2 * heads, heads, heads], 1)
    if head_norms is not None:
        q, k = (rms_norm(each, weight, eps) for each, weight in zip((q, k), head_norms, strict=True))
    slots = places.slots.long()
    keys.index_copy_(1, slots, _turned(k, places).transpose(0, 1).to(keys.dtype))
    values.index_copy_(1, slots, v.transpose(0, 1).to(values.dtype))
    return _turned(q, places), k


def _turned(x: Tensor, places: RowPlaces) -> Tensor:
    """x [M,h,D], rotated in float32."""
    left, right = x.float().chunk(2, -1)
    cos, sin = places.cos[:, None], places.sin[:, None]
    return torch.cat((left * cos - right * sin, right * cos + left * sin), -1).to(x.dtype)


def linear(
    x: Tensor,
    matrix: Matrix,
    norm: Tensor | None = None,
    eps: float = 0.0,
    residual: Tensor | None = None,
    gated: bool = False,
) -> Tensor:
    """x [M,in] times the matrix, with an optional norm before and optional SwiGLU and residual [M,out] after it.

    The kernel is for few rows, up to about 64.
    """
    x = x if norm is None else rms_norm(x, norm, eps)
    y = F.linear(x, dense(matrix.weight, matrix.scales, x.dtype))
    y = y if matrix.bias is None else y + matrix.bias.to(y.dtype)
    if matrix.down is not None and matrix.up is not None:
        y = y + F.linear(F.linear(x, matrix.down.to(x.dtype)), matrix.up.to(x.dtype))
    y = swiglu(y) if gated else y
    return y if residual is None else y + residual


def dense(weight: Tensor, scales: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The weights [out,in] of a `Matrix` as floats; of codes this reads a byte and writes a float for each."""
    if scales is None:
        return weight.to(dtype)
    made = torch.empty(weight.shape, dtype=dtype, device=weight.device)
    codes, out = (each.unflatten(1, (-1, GROUP)) for each in (weight, made))
    torch.mul(codes, scales.float().T[..., None], out=out)
    return made


def attention(q: Tensor, keys: Tensor, values: Tensor, seen: Visibility, scale: float) -> Tensor:
    """Attention [M,H*G*D] of q [M,H*G,D] over the visible keys and values [H,T,D].

    A row that sees no key gets zeros.
    """
    heads, length, width = keys.shape
    folded = q.view(len(q), heads, -1, width).permute(1, 2, 0, 3).float()  # [H,G,M,D]
    scores = folded @ keys[:, None].transpose(-1, -2).float() * scale
    order, place = seen.order[None, :length], torch.arange(length, device=q.device)
    visible = (order <= seen.limit[:, None]) & ((order >= seen.first[:, None]) | (order == 0)) & (place < seen.used)
    weights = scores.masked_fill(~visible, float("-inf")).softmax(-1).nan_to_num(0.0)
    used = values.masked_fill((place >= seen.used)[:, None], 0.0)[:, None].float()
    return (weights @ used).permute(2, 0, 1, 3).flatten(1).to(keys.dtype)


def answers(hidden: Tensor, matrix: Matrix, bits: Tensor, lists: Tensor, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """The likeliest allowed token int32 [W] of hidden [W,C] over matrix [V,C], and its figures float32 [W,4].

    The kernel does not store the logits, products times `scale`. See `figures`.
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
