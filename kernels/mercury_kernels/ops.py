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

from mercury_kernels import reference
from mercury_kernels.operands import Matrix, RowPlaces, Visibility
from mercury_kernels.reference import (
    Segment,
    causal_attention,
    rms_norm,
    rotary_angles,
    rotate,
    segmented_attention,
    swiglu,
)

__all__ = [
    "Matrix",
    "RowPlaces",
    "Segment",
    "Visibility",
    "answers",
    "attention",
    "availability",
    "causal_attention",
    "linear",
    "project_qkv",
    "rms_norm",
    "rotary_angles",
    "rotate",
    "segmented_attention",
    "swiglu",
    "why_not",
]


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
    kernels = _triton("qkv") if x.is_cuda else reference
    return kernels.project_qkv(x, norm, eps, matrix, head_norms, places, keys, values)


def attention(q: Tensor, keys: Tensor, values: Tensor, seen: Visibility, scale: float) -> Tensor:
    """Attention [M,H*G*D] of q [M,H*G,D] over the visible keys and values [H,T,D]."""
    kernels = _triton("attention") if q.is_cuda else reference
    return kernels.attention(q, keys, values, seen, scale)


def linear(
    x: Tensor,
    matrix: Matrix,
    norm: Tensor | None = None,
    eps: float = 0.0,
    residual: Tensor | None = None,
    gated: bool = False,
) -> Tensor:
    """x [M,in] times the matrix, with an optional norm before and optional SwiGLU and residual [M,out] after it.

    For few rows, up to about 64.
    """
    kernels = _triton("linear") if x.is_cuda else reference
    return kernels.linear(x, matrix, norm, eps, residual, gated)


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
