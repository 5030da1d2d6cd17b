"""RMSNorm: y = x / sqrt(mean(x^2) + eps) * weight. arXiv 1910.07467.

Dimensions: M rows, C channels.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from mercury_kernels import reference
from mercury_kernels.launch import guarded, options, power


@triton.jit
def _rms_norm(
    x: tl.tensor,
    weight: tl.tensor,
    out: tl.tensor,
    eps: tl.tensor,
    C: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64) * C
    columns = tl.arange(0, BLOCK)
    inside = columns < C
    scale = tl.load(weight + columns, inside, 0.0).to(tl.float32)
    wide = tl.load(x + row + columns, inside, 0.0).to(tl.float32)
    rms = tl.rsqrt(tl.sum(wide * wide, 0) / C + eps)
    tl.store(out + row + columns, (wide * rms * scale).to(out.dtype.element_ty), inside)


@guarded(reference.rms_norm)
def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """The norm of x [...,C] with weight [C]."""
    x = x.contiguous()
    out = torch.empty_like(x)
    channels = x.shape[-1]
    rows = x.numel() // channels if channels else 0
    if rows:
        block = power(channels)
        warps = 4 if block <= 2048 else 8
        _rms_norm[(rows,)](x, weight, out, eps, channels, block, **options(x.device, warps, 1))
    return out
