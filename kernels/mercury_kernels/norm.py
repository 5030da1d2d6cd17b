"""RMSNorm: y = x / sqrt(mean(x^2) + eps) * weight, optionally of x + residual. arXiv 1910.07467.

Dimensions: M rows, C channels.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from mercury_kernels import reference
from mercury_kernels.launch import guarded, options, power, ready


@triton.jit
def _rms_norm(
    x: tl.tensor,
    residual: tl.tensor,
    weight: tl.tensor,
    out: tl.tensor,
    total: tl.tensor,
    eps: tl.tensor,
    C: tl.tensor,
    HAS_RESIDUAL: tl.constexpr,
    BLOCK: tl.constexpr,
    OVERLAP: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64) * C
    columns = tl.arange(0, BLOCK)
    inside = columns < C
    scale = tl.load(weight + columns, inside, 0.0).to(tl.float32)
    ready(OVERLAP)
    wide = tl.load(x + row + columns, inside, 0.0).to(tl.float32)
    if HAS_RESIDUAL:
        wide += tl.load(residual + row + columns, inside, 0.0).to(tl.float32)
        rounded = wide.to(total.dtype.element_ty)
        tl.store(total + row + columns, rounded, inside)
        wide = rounded.to(tl.float32)
    rms = tl.rsqrt(tl.sum(wide * wide, 0) / C + eps)
    tl.store(out + row + columns, (wide * rms * scale).to(out.dtype.element_ty), inside)


@guarded(reference.rms_norm)
def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """The norm of x [...,C] with weight [C]."""
    x = x.contiguous()
    out = torch.empty_like(x)
    _launch(x, x, weight, out, out, eps, False)
    return out


@guarded(reference.add_rms_norm)
def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The norm of x + residual, and that sum; both [...,C]."""
    x, residual = x.contiguous(), residual.contiguous()
    out, total = torch.empty_like(x), torch.empty_like(x)
    _launch(x, residual, weight, out, total, eps, True)
    return out, total


def _launch(x: Tensor, residual: Tensor, weight: Tensor, out: Tensor, total: Tensor, eps: float, added: bool) -> None:
    channels = x.shape[-1]
    rows = x.numel() // channels if channels else 0
    if not rows:
        return
    block = power(channels)
    warps = 4 if block <= 2048 else 8
    _rms_norm[(rows,)](x, residual, weight, out, total, eps, channels, added, block, **options(x.device, warps, 1))
