"""The public operations: Triton kernels on a GPU, their torch twins elsewhere, and some in torch alone.

If a kernel cannot run on a device, its twin answers and the log says so once (`launch.guarded`); `availability`
summarises this for users.
"""

import functools
import importlib
import logging
from types import ModuleType

import torch
from torch import Tensor
from torch.nn import functional as F

from mercury_kernels import reference
from mercury_kernels.operands import Matrix, RowPositions, Table
from mercury_kernels.reference import (
    Segment,
    causal_attention,
    rms_norm,
    rotary_angles,
    rotary_table,
    rotate,
    segmented_attention,
    swiglu,
)

__all__ = [
    "Matrix",
    "RowPositions",
    "Segment",
    "Table",
    "answers",
    "availability",
    "causal_attention",
    "linear",
    "paged_attention",
    "project_qkv",
    "rms_norm",
    "rotary_angles",
    "rotary_table",
    "rotate",
    "segmented_attention",
    "swiglu",
    "why_not",
]

FUSED_ROWS = 128
"""Number of rows up to which reading the weights limits a product, so that one fused pass over them is fastest."""


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
    """Rotated queries [M,H*G,D] of RMSNorm of x [M,C] times the matrix; one kernel for few rows, three for many.

    The rows' keys and values are stored in pages [N,H,P,D]: slots int32 [M] are page * P + offset; rows that must leave
    nothing share a scrap page.
    """
    kernels = _triton("qkv") if x.is_cuda else reference
    if x.is_cuda and len(x) > FUSED_ROWS:
        return kernels.rotate_and_store(linear(x, matrix, norm, eps), places, keys, values, slots)
    return kernels.project_qkv(x, norm, eps, matrix, places, keys, values, slots)


def paged_attention(q: Tensor, keys: Tensor, values: Tensor, table: Table) -> Tensor:
    """Attention [M,H*G*D] over all visible keys together; q [M,H*G,D], keys and values [N,H,P,D]."""
    kernels = _triton("attention") if q.is_cuda else reference
    return kernels.paged_attention(q, keys, values, table)


def linear(
    x: Tensor,
    matrix: Matrix,
    norm: Tensor | None = None,
    eps: float = 0.0,
    residual: Tensor | None = None,
    gated: bool = False,
) -> Tensor:
    """x [M,in] times the matrix, with an optional norm before and optional SwiGLU and residual [M,out] after it.

    Many rows go to the library's matrix product.
    """
    if x.is_cuda and len(x) > FUSED_ROWS:
        return _many(x if norm is None else rms_norm(x, norm, eps), matrix, residual, gated)
    kernels = _triton("linear") if x.is_cuda else reference
    return kernels.linear(x, matrix, norm, eps, residual, gated)


def _many(x: Tensor, matrix: Matrix, residual: Tensor | None, gated: bool) -> Tensor:
    if residual is not None and not gated and matrix.bias is None:
        return torch.addmm(residual, x, matrix.weight.T)  # adds the residual inside the product's kernel
    y = F.linear(x, matrix.weight, matrix.bias)
    y = swiglu(y) if gated else y
    return y if residual is None else y + residual


def answers(hidden: Tensor, matrix: Matrix, bits: Tensor, lists: Tensor, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """The likeliest allowed token int32 [W] of hidden [W,C] over matrix [V,C], and its figures float32 [W,4].

    See `reference.figures`; the kernel stores no logits.
    """
    kernels = _triton("answers") if hidden.is_cuda else reference
    return kernels.answers(hidden, matrix, bits, lists, scale)


def availability() -> str:
    """One line that says whether the kernels run on this machine and, if not, why; tries one of them."""
    if not torch.cuda.is_available():
        return "no CUDA device: torch twins are used"
    device = torch.device("cuda", torch.cuda.current_device())
    name, version = torch.cuda.get_device_name(device), torch.cuda.get_device_capability(device)
    if why := _import_error("linear"):
        return f"{name}: Triton cannot be imported ({why}), torch twins are used: pip install triton"
    launch = importlib.import_module("mercury_kernels.launch")
    x = torch.ones(16, 16, device=device)
    linear(x, Matrix(x))
    if version < launch.OLDEST_CAPABILITY:
        return f"{name}, compute capability {version[0]}.{version[1]}: too old (8.0 is needed), torch twins are used"
    if launch.broken:
        refused = "; ".join(f"{kernel} ({why})" for kernel, why in launch.broken.items())
        return f"{name}: torch's own operations, slower and with the same result, replace {refused}"
    return f"{name}, compute capability {version[0]}.{version[1]}: kernels run"


def why_not(device: torch.device) -> str | None:
    """Why the kernels cannot run on a CUDA device, before one of them is tried; None if they can."""
    if why := _import_error("linear"):
        return f"Triton cannot be imported ({why}): pip install triton"
    oldest = importlib.import_module("mercury_kernels.launch").OLDEST_CAPABILITY
    found = torch.cuda.get_device_capability(device)
    return None if found >= oldest else f"compute capability {found[0]}.{found[1]} is too old (8.0 is needed)"


@functools.cache
def _triton(name: str) -> ModuleType:
    """The kernels' module, imported on first use; the twins' module if Triton cannot be imported."""
    if why := _import_error(name):
        logging.getLogger("mercury_kernels").warning("Triton cannot be imported (%s); torch twins are used", why)
        return reference
    return importlib.import_module(f"mercury_kernels.{name}")


@functools.cache
def _import_error(name: str) -> str | None:
    try:
        importlib.import_module(f"mercury_kernels.{name}")
    except Exception as error:  # a broken Triton raises many kinds
        return f"{type(error).__name__}: {error}"
    return None
