"""What launches of Triton kernels share: limits of the device, launch options, and a product."""

import functools
from typing import Any

import torch
import triton
import triton.language as tl

INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)
"""Whether kernels run on CPU tensors in Triton's interpreter, one program after another."""


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
