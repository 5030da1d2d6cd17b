"""SwiGLU: silu(gate) * up for the two halves of the last dimension. arXiv 2002.05202.

Dimensions: M rows, I inner channels.
"""

import triton
import triton.language as tl
from torch import Tensor

from mercury_kernels import reference
from mercury_kernels.launch import guarded, options, power


@triton.jit
def _swiglu(gate_up: tl.tensor, out: tl.tensor, I: tl.tensor, BLOCK: tl.constexpr) -> None:  # noqa: E741
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < I
    gate = tl.load(gate_up + row * 2 * I + columns, inside, 0.0).to(tl.float32)
    up = tl.load(gate_up + row * 2 * I + I + columns, inside, 0.0).to(tl.float32)
    tl.store(out + row * I + columns, (gate * tl.sigmoid(gate) * up).to(out.dtype.element_ty), inside)


@guarded(reference.swiglu)
def swiglu(gate_up: Tensor) -> Tensor:
    """[...,I] from gate_up [...,2I], gate first."""
    gate_up = gate_up.contiguous()
    inner = gate_up.shape[-1] // 2
    out = gate_up.new_empty(*gate_up.shape[:-1], inner)
    if out.numel():
        block = min(1024, power(inner))
        grid = (out.numel() // inner, triton.cdiv(inner, block))
        _swiglu[grid](gate_up, out, inner, block, **options(out.device, 4, 1))
    return out
