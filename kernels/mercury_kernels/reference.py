"""Plain torch twins of every operation: the definition that faster ones are tested against.

Dimensions: B batch, H key heads, G query heads per key head, S queries, T keys, D head width, C channels.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

Segment = tuple[Tensor, Tensor, Tensor, Tensor | None]
"""Queries [B,H,GS,D] rotated for this segment, keys [B,H,T,D], values [B,H,T,D], bias [B|1,1,GS|1,T] or None."""


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / rms(x) * weight over the last dimension, in float32 inside. arXiv 1910.07467."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def rotary_angles(positions: Tensor, head_width: int, theta: float) -> tuple[Tensor, Tensor]:
    """Cosines and sines [..., D] float32 for integer positions [...], which may be negative. arXiv 2104.09864."""
    frequency = theta ** (-torch.arange(0, head_width, 2, device=positions.device).float() / head_width)
    angle = positions.float()[..., None] * frequency
    angle = torch.cat((angle, angle), -1)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding in halves: x [..., T, D], cos and sin [T, D] or broadcastable."""
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * cos.to(x.dtype) + turned * sin.to(x.dtype)


def segmented_attention(segments: list[Segment]) -> Tensor:
    """softmax over the keys of all segments together; each segment meets queries rotated for its own frame.

    Returns [B,H,GS,D]. A bias of -inf hides a key; at least one key must stay visible to every query.
    """
    scale = segments[0][0].shape[-1] ** -0.5
    scores = [_scores(q, k, bias, scale) for q, k, _, bias in segments]
    weights = torch.cat(scores, -1).softmax(-1).to(segments[0][0].dtype)
    parts = weights.split([s.shape[-1] for s in scores], -1)
    out = parts[0] @ segments[0][2]
    for part, (_, _, v, _) in zip(parts[1:], segments[1:], strict=True):
        out = out + part @ v
    return out


def _scores(q: Tensor, k: Tensor, bias: Tensor | None, scale: float) -> Tensor:
    scores = (q @ k.transpose(-1, -2)).float() * scale
    return scores if bias is None else scores + bias


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of T queries a group [B,H,GT,D] to the same T tokens' keys and values [B,H,T,D], none to later ones."""
    batch, heads, tokens, width = k.shape
    wide = q.view(batch, -1, tokens, width)
    out = F.scaled_dot_product_attention(wide, k, v, is_causal=True, enable_gqa=True)
    return out.view(batch, heads, -1, width)


def swiglu(gate_up: Tensor) -> Tensor:
    """silu(gate) * up for the two halves of the last dimension. arXiv 2002.05202."""
    gate, up = gate_up.chunk(2, -1)
    return F.silu(gate) * up
