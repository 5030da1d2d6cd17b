"""Launching Triton kernels: where they may run, and the fallback to their torch twins.

A kernel runs on CUDA devices of compute capability 8.0 or newer (bfloat16 matrix units), and on CPU tensors in
Triton's interpreter. If it cannot be compiled, its torch twin answers, and the log says so once; tests on a GPU set
MERCURY_STRICT_KERNELS, so that they never compare a twin with itself.
"""

import functools
import logging
import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch
import triton
import triton.language as tl

log = logging.getLogger("mercury_kernels")

P = ParamSpec("P")
R = TypeVar("R")

INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)
"""Whether kernels run on the CPU, one program after another."""

OLDEST_CAPABILITY = (8, 0)
"""Lowest compute capability with bfloat16 matrix units."""

STRICT_VARIABLE = "MERCURY_STRICT_KERNELS"
"""Environment variable: with 1, a kernel that does not compile raises its error instead of calling its twin."""

DEVICE_FAULTS = ("illegal memory access", "misaligned address", "illegal instruction", "launch failure", "assert")
"""Parts of errors that a running kernel causes; launches return early, so any kernel may be at fault."""

broken: dict[str, str] = {}
"""Kernels that could not run, and why; their twins answer instead."""


def guarded(twin: Callable[P, R]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let the twin answer if the kernel does not compile; logs it once."""

    def decorate(kernel: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(kernel)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            if INTERPRETED.value:
                return kernel(*args, **kwargs)
            if kernel.__name__ in broken:
                return twin(*args, **kwargs)
            try:
                return kernel(*args, **kwargs)
            except Exception as error:
                if not compile_failure(error) or os.environ.get(STRICT_VARIABLE) == "1":
                    raise
                give_up(kernel.__name__, error)
                return twin(*args, **kwargs)

        return run

    return decorate


def compile_failure(error: Exception) -> bool:
    """Whether the kernel never ran: a failed compiler or assembler, resource limits, no C compiler for the launcher.

    A fault of the device is none: the kernel that reports it is not always the one at fault.
    """
    if isinstance(error, (torch.OutOfMemoryError, getattr(torch, "AcceleratorError", torch.OutOfMemoryError))):
        return False
    if any(words in str(error) for words in DEVICE_FAULTS):
        return False
    module = type(error).__module__
    # Triton finds no compiler: RuntimeError; the compiler fails: CalledProcessError; MLIR fails: RuntimeError
    return module.startswith(("triton", "subprocess")) or isinstance(error, (OSError, RuntimeError))


def give_up(name: str, error: Exception) -> None:
    """Use the kernel's twin from now on, and log why."""
    broken[name] = " ".join(str(error).split())[:300] or type(error).__name__
    log.warning("kernel %s is off, its torch twin answers (slower, same result): %s", name, broken[name])


@functools.cache
def multiprocessors(device: torch.device) -> int:
    """Number of multiprocessors, which run at least one program each; 4 on other devices."""
    if device.type != "cuda":
        return 4
    return torch.cuda.get_device_properties(device).multi_processor_count


@functools.cache
def shared_memory(device: torch.device) -> int:
    """Most shared memory of a program, in bytes; an H200's on other devices."""
    if device.type != "cuda":
        return 232_448
    number = torch.cuda.current_device() if device.index is None else device.index
    return int(triton.compiler.max_shared_mem(number))


def stages(device: torch.device, most: int, each: int) -> int:
    """Stages of a loop whose steps load `each` bytes; all stages but the last hold a load in shared memory."""
    return max(1, min(most, 1 + shared_memory(device) // each))


def power(value: int, least: int = 16, most: int = 1 << 30) -> int:
    """The next power of two, clamped to limits that are powers of two."""
    return max(least, min(most, 1 << max(0, value - 1).bit_length()))


def options(device: torch.device, warps: int, stages: int) -> dict[str, Any]:
    """Launch options; the interpreter takes none."""
    return {"num_warps": warps, "num_stages": stages} if device.type == "cuda" else {}


@triton.jit
def dot(a: tl.tensor, b: tl.tensor, acc: tl.tensor) -> tl.tensor:
    """acc + a @ b. The interpreter multiplies bfloat16 wrongly, so it gets float32."""
    if INTERPRETED:
        out = tl.dot(a.to(tl.float32), b.to(tl.float32), acc, input_precision="ieee")
    else:
        out = tl.dot(a, b, acc, input_precision="ieee")
    return out
