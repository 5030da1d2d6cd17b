"""Which implementation runs a model's network: torch on a GPU or for checking, the C kernels on a CPU."""

import contextlib
import ctypes
import gc
import logging
import mmap
import os
import re
from pathlib import Path
from typing import Literal

import torch

from mercury_engine.errors import RequestError
from mercury_engine.models import weights
from mercury_engine.models.cpu import CpuNetwork, layers_for
from mercury_engine.models.network import Network

Backend = Literal["auto", "native", "torch"]

MOST_THREADS = 8
"""CPU threads at most, unless asked for more: further ones bring little to so small a model."""

OLDEST_BFLOAT16_CAPABILITY = (8, 0)
"""Compute capability of the first GPUs that multiply it."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Options of glibc's `mallopt`, from malloc.h."""

_CODE_AS_IN_THE_FILE = re.compile(
    r"^(\w+)-(\w+) r-xp .*/.*\n"  # a file mapped to be run
    r"(?:(?!Anonymous)[A-Z].*\n)*Anonymous: +0 kB",  # of whose pages none was written to, which would be lost
    re.MULTILINE,
)
"""Start and end of such a mapping in Linux's smaps."""

_log = logging.getLogger(__name__)


def networks(
    folder: Path, device: torch.device, dtype: torch.dtype | None, threads: int | None, backend: Backend
) -> tuple[Network, Network | None]:
    """The folder's reader and, where it has an adapter, its writer; ready to run.

    `threads` counts CPU threads; None is half the processors. Raises RequestError when the backend is not there.
    """
    if backend == "native" and (device.type != "cpu" or dtype is not None):
        raise RequestError(
            "backend is 'native', which runs on a CPU and in bits of its own; leave out device and dtype"
        )
    count = threads or max(1, min(MOST_THREADS, (os.cpu_count() or 2) // 2))
    if device.type == "cpu" and dtype is None and backend != "torch" and (network := _native(folder, count, backend)):
        give_back_memory()
        let_go_of_code()
        return network, network if network.config.adapter_rank else None
    if device.type == "cpu":
        torch.set_num_threads(count)
    network = weights.load(folder, dtype or _dtype(device), device)
    return network, weights.merged_writer(network) if network.config.adapter_rank else None


def _native(folder: Path, threads: int, backend: Backend) -> Network | None:
    """The folder's network run by the C kernels; None where they can't and something else may. Raises RequestError."""
    config = weights.read_config(folder)
    map_large_blocks()
    try:
        network = CpuNetwork(folder, config, layers_for(config, threads))
    except (OSError, ValueError, MemoryError) as error:
        if backend == "native":
            raise RequestError(f"backend is 'native', but {error}; or use 'auto'") from error
        _log.warning("%s: torch runs the model, several times as slow", error)
        return None
    torch.set_num_threads(1)  # what is left to it is small
    return network


def map_large_blocks() -> None:
    """Have glibc map blocks of a megabyte and more, so that they go back when freed."""
    with contextlib.suppress(OSError, AttributeError):
        glibc = ctypes.CDLL("libc.so.6")
        for option in (_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD):
            glibc.mallopt(option, 1 << 20)


def give_back_memory() -> None:
    """Collect garbage and return freed memory to the system."""
    gc.collect()
    give_back_freed()


def give_back_freed() -> None:
    """Return to the system what glibc keeps of freed memory, some 25 MB after much was read; takes milliseconds."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def let_go_of_code() -> None:
    """Unmap libraries' code that importing and loading touched; what runs again is mapped again.

    It stays in the system's cache of files, where other processes find it too. Without effect where it can't be done.
    """
    with contextlib.suppress(OSError, AttributeError):
        madvise = ctypes.CDLL("libc.so.6").madvise
        for start, end in _CODE_AS_IN_THE_FILE.findall(Path("/proc/self/smaps").read_text()):
            size = int(end, 16) - int(start, 16)
            madvise(ctypes.c_void_p(int(start, 16)), ctypes.c_size_t(size), mmap.MADV_DONTNEED)


def _dtype(device: torch.device) -> torch.dtype:
    """bfloat16 where the processor multiplies it natively, else float32."""
    if device.type == "cuda":
        found = torch.cuda.get_device_capability(device)
        if found >= OLDEST_BFLOAT16_CAPABILITY:
            return torch.bfloat16
        name = torch.cuda.get_device_name(device)
        _log.warning("%s (compute capability %d.%d) has no bfloat16: the model runs in float32, slower", name, *found)
        return torch.float32
    capability: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()
    native = capability.get("avx512_bf16") or capability.get("amx_bf16") or capability.get("bf16")
    return torch.bfloat16 if native else torch.float32
