"""The operations that have kernels: Triton on a GPU, their torch twins elsewhere.

Kernels run on CUDA devices of compute capability 8.0 or newer (bfloat16 matrix units). If one does not compile, its
twin answers, and the log says so once; `availability` summarises this for users.
"""

import functools
import importlib
import logging
import os
from collections.abc import Callable
from types import ModuleType
from typing import Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor

from mercury_kernels import reference
from mercury_kernels.operands import Matrix

__all__ = [
    "answers",
    "attention",
    "availability",
    "broken",
    "draw",
    "linear",
    "project_qkv",
    "reveal",
    "why_not",
]

log = logging.getLogger("mercury_kernels")

P = ParamSpec("P")
R = TypeVar("R")

STRICT_VARIABLE = "MERCURY_STRICT_KERNELS"
"""Environment variable: with 1, a kernel that does not compile raises its error, so that tests compare no twin with
itself."""

DEVICE_FAULTS = ("illegal memory access", "misaligned address", "illegal instruction", "launch failure", "assert")
"""Parts of errors that a running kernel causes; launches return early, so any kernel may be at fault."""

broken: dict[str, str] = {}
"""Kernels that could not run, and why; their twins answer instead."""


def why_not(device: torch.device) -> str | None:
    """Why the kernels cannot run on a CUDA device, before one of them is tried; None if they can."""
    if why := _import_error():
        return f"Triton cannot be imported ({why}): pip install triton"
    found = torch.cuda.get_device_capability(device)
    return None if found >= (8, 0) else f"compute capability {found[0]}.{found[1]} is too old (8.0 is needed)"


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
    if broken:
        refused = "; ".join(f"{kernel} ({why})" for kernel, why in broken.items())
        return f"{name}: torch's own operations, slower and with the same result, replace {refused}"
    return f"{name}: kernels run"


def _on_gpus(module: str, twin: Callable[Concatenate[Tensor, P], R]) -> Callable[Concatenate[Tensor, P], R]:
    """The twin, or where its first argument is on a GPU that runs them the kernel of its name."""
    name = twin.__name__

    @functools.wraps(twin)
    def run(first: Tensor, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if not first.is_cuda or name in broken:
            return twin(first, *args, **kwargs)
        kernel: Callable[Concatenate[Tensor, P], R] = getattr(_kernels(module, first.device), name)
        try:
            return kernel(first, *args, **kwargs)
        except Exception as error:
            if kernel is twin or not _never_ran(error) or os.environ.get(STRICT_VARIABLE) == "1":
                raise
            broken[name] = " ".join(str(error).split())[:300] or type(error).__name__
            log.warning("kernel %s is off, its torch twin answers (slower, same result): %s", name, broken[name])
            return twin(first, *args, **kwargs)

    return run


def _never_ran(error: Exception) -> bool:
    """Whether a kernel did not run: a failed compiler or assembler, resource limits, no C compiler for the launcher.

    After a fault of the device it did: the kernel that reports one is not always the one at fault.
    """
    if isinstance(error, (torch.OutOfMemoryError, getattr(torch, "AcceleratorError", torch.OutOfMemoryError))):
        return False
    if any(words in str(error) for words in DEVICE_FAULTS):
        return False
    module = type(error).__module__
    # Triton finds no compiler: RuntimeError; the compiler fails: CalledProcessError; MLIR fails: RuntimeError
    return module.startswith(("triton", "subprocess")) or isinstance(error, (OSError, RuntimeError))


@functools.cache
def _kernels(module: str, device: torch.device) -> ModuleType:
    return reference if why_not(device) else importlib.import_module(f"mercury_kernels.{module}")


@functools.cache
def _import_error() -> str | None:
    try:
        importlib.import_module("mercury_kernels.linear")
    except Exception as error:  # a broken Triton raises many kinds
        return f"{type(error).__name__}: {error}"
    return None


project_qkv = _on_gpus("qkv", reference.project_qkv)
attention = _on_gpus("attention", reference.attention)
linear = _on_gpus("linear", reference.linear)
answers = _on_gpus("answers", reference.answers)
draw = _on_gpus("reveal", reference.draw)
reveal = _on_gpus("reveal", reference.reveal)
