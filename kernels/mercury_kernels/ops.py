"""The operations that have kernels: Triton on a GPU, their torch twins elsewhere.

If a kernel does not compile, its twin runs and the log says so once (`launch.guarded`); `availability` summarises this
for users.
"""

import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

from mercury_kernels import reference
from mercury_kernels.operands import Matrix

__all__ = [
    "answers",
    "attention",
    "availability",
    "draw",
    "linear",
    "project_qkv",
    "reveal",
    "why_not",
]

P = ParamSpec("P")
R = TypeVar("R")


def why_not(device: torch.device) -> str | None:
    """Why the kernels cannot run on a CUDA device, before one of them is tried; None if they can."""
    if why := _import_error():
        return f"Triton cannot be imported ({why}): pip install triton"
    oldest, found = _module("launch").OLDEST_CAPABILITY, torch.cuda.get_device_capability(device)
    return None if found >= oldest else f"compute capability {found[0]}.{found[1]} is too old (8.0 is needed)"


def availability() -> str:
    """One line that says whether the kernels run on this machine and, if not, why; tries one of them."""
    if not torch.cuda.is_available():
        return "no CUDA device: torch twins are used"
    device = torch.device("cuda", torch.cuda.current_device())
    name = torch.cuda.get_device_name(device)
    if why := why_not(device):
        return f"{name}: torch twins are used, {why}"
    x = torch.ones(16, 16, device=device)
    linear(x, Matrix(x))
    if broken := _module("launch").broken:
        refused = "; ".join(f"{kernel} ({why})" for kernel, why in broken.items())
        return f"{name}: torch's own operations, slower and with the same result, replace {refused}"
    return f"{name}: kernels run"


def _on_gpus(module: str, twin: Callable[P, R]) -> Callable[P, R]:
    """The twin, or where its first argument is on a GPU that runs them the kernel of its name."""

    @functools.wraps(twin)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        kernels = _kernels(module, args[0].device) if isinstance(args[0], Tensor) and args[0].is_cuda else reference
        result: R = getattr(kernels, twin.__name__)(*args, **kwargs)
        return result

    return run


@functools.cache
def _kernels(module: str, device: torch.device) -> ModuleType:
    return reference if why_not(device) else _module(module)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"mercury_kernels.{name}")


@functools.cache
def _import_error() -> str | None:
    try:
        _module("linear")
    except Exception as error:  # a broken Triton raises many kinds
        return f"{type(error).__name__}: {error}"
    return None


project_qkv = _on_gpus("qkv", reference.project_qkv)
attention = _on_gpus("attention", reference.attention)
linear = _on_gpus("linear", reference.linear)
answers = _on_gpus("answers", reference.answers)
draw = _on_gpus("reveal", reference.draw)
reveal = _on_gpus("reveal", reference.reveal)
