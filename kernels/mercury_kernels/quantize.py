"""Quantises rows to 8-bit codes: scale = max|x| / largest code, codes = round(x / scale); optional RMSNorm first.

Dimensions: M rows, C channels.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from mercury_kernels import reference
from mercury_kernels.launch import OLDEST_FP8_CAPABILITY, guarded, options, power, ready, require
from mercury_kernels.operands import LARGEST_CODE


@triton.jit
def _quantize(
    x: tl.tensor,
    norm: tl.tensor,
    codes: tl.tensor,
    scales: tl.tensor,
    eps: tl.tensor,
    largest: tl.tensor,
    C: tl.tensor,
    HAS_NORM: tl.constexpr,
    BLOCK: tl.constexpr,
    OVERLAP: tl.constexpr,
) -> None:
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < C
    ready(OVERLAP)
    value = tl.load(x + row.to(tl.int64) * C + columns, inside, 0.0).to(tl.float32)
    if HAS_NORM:
        value *= tl.rsqrt(tl.sum(value * value, 0) / C + eps)
        value *= tl.load(norm + columns, inside, 0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(value), 0), 1e-12) / largest
    code = value / scale
    if codes.dtype.element_ty == tl.int8:
        code = tl.floor(code + 0.5)
    code = tl.clamp(code, -largest, largest)
    tl.store(codes + row.to(tl.int64) * C + columns, code.to(codes.dtype.element_ty), inside)
    tl.store(scales + row, scale)


@guarded(reference.quantize_rows)
def quantize_rows(x: Tensor, dtype: torch.dtype, norm: Tensor | None = None, eps: float = 0.0) -> tuple[Tensor, Tensor]:
    """Codes int8 or float8_e4m3fn [M,C] and scales float32 [M]; x is about codes * scale."""
    if dtype is torch.float8_e4m3fn:
        require(x.device, OLDEST_FP8_CAPABILITY)
    x = x.contiguous()
    rows, channels = x.shape
    codes = torch.empty(rows, channels, dtype=dtype, device=x.device)
    scales = torch.empty(rows, dtype=torch.float32, device=x.device)
    if rows:
        _quantize[(rows,)](
            x, x if norm is None else norm, codes, scales, eps, LARGEST_CODE[dtype], channels, norm is not None,
            power(channels), **options(x.device, 4 if channels <= 2048 else 8, 1),
        )  # fmt: skip
    return codes, scales
