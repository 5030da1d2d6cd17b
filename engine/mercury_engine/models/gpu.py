"""Finds NVIDIA GPUs through their driver, so that a machine without one never imports torch."""

import ctypes
import sys
from functools import cache
from importlib.util import find_spec

from mercury_kernels.installation import cuda_torch_command, install_command

LONGEST_NAME = 128
"""Bytes of a device's name."""


def _driver() -> ctypes.CDLL:
    """Raises OSError where there is none."""
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


@cache
def nvidia_gpus() -> tuple[str, ...]:
    """The names of the GPUs that CUDA programs see; empty without a driver or a GPU."""
    try:
        cuda = _driver()
        count, name = ctypes.c_int(), ctypes.create_string_buffer(LONGEST_NAME)
        if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
            return ()
        names = []
        for number in range(count.value):
            device = ctypes.c_int()
            if not cuda.cuDeviceGet(ctypes.byref(device), number):
                cuda.cuDeviceGetName(name, LONGEST_NAME, device)
                names.append(name.value.decode(errors="replace"))
        return tuple(names)
    except (OSError, AttributeError):
        return ()


@cache
def driver() -> str:
    """The newest version of CUDA that the driver runs, such as 13.0; empty without a driver."""
    try:
        found = ctypes.c_int()
        _driver().cuDriverGetVersion(ctypes.byref(found))
        return f"CUDA {found.value // 1000}.{found.value % 1000 // 10}"
    except (OSError, AttributeError):
        return ""


def has_torch() -> bool:
    """Whether torch is installed; does not import it."""
    return find_spec("torch") is not None


def free_bytes(device: str) -> int | None:
    """Free memory of a GPU, in bytes; None where torch finds none."""
    import torch

    return torch.cuda.mem_get_info(device)[0] if torch.cuda.is_available() else None


def why_without_cuda() -> str | None:
    """Why torch cannot use a GPU, and what helps; None if it can."""
    if not has_torch():
        return f"torch is not installed: {install_command('gpu')}"
    import torch

    if torch.cuda.is_available():
        return None
    if not nvidia_gpus():
        return "there is no NVIDIA GPU, or its driver does not answer: check nvidia-smi"
    if torch.version.cuda is None:
        return f"torch {torch.__version__} was built without CUDA: {cuda_torch_command()}"
    return f"torch {torch.__version__} needs a driver with CUDA {torch.version.cuda}: update the driver"
