"""Chooses the implementation that runs a model's network: torch on a GPU or for checking, the C kernels on a CPU."""

import logging
import os
from pathlib import Path
from typing import Literal

import torch

from mercury_engine.errors import RequestError
from mercury_engine.models import weights
from mercury_engine.models.cpu import CpuNetwork, layers_for
from mercury_engine.models.memory import collect_and_return_memory, map_large_allocations, unmap_library_code
from mercury_engine.models.network import Network

Backend = Literal["auto", "native", "torch"]

MOST_THREADS = 8
"""Largest default number of CPU threads; more bring little to so small a model."""

OLDEST_BFLOAT16_CAPABILITY = (8, 0)
"""Compute capability of the first GPUs that multiply bfloat16."""

_log = logging.getLogger(__name__)


def networks(
    folder: Path, device: torch.device, dtype: torch.dtype | None, threads: int | None, backend: Backend
) -> tuple[Network, Network | None]:
    """The folder's reader and, where it has an adapter, its writer; ready to run.

    `threads` is the number of CPU threads; None is half the processors. Raises RequestError when the backend is not
    available.
    """
    if backend == "native" and (device.type != "cpu" or dtype is not None):
        raise RequestError(
            "backend is 'native', which runs on a CPU and chooses its own precision; leave out device and dtype"
        )
    count = threads or max(1, min(MOST_THREADS, (os.cpu_count() or 2) // 2))
    if device.type == "cpu" and dtype is None and backend != "torch" and (network := _native(folder, count, backend)):
        collect_and_return_memory()
        unmap_library_code()
        return network, network if network.config.adapter_rank else None
    if device.type == "cpu":
        torch.set_num_threads(count)
    network = weights.load(folder, dtype or _dtype(device), device)
    return network, weights.merged_writer(network) if network.config.adapter_rank else None


def _native(folder: Path, threads: int, backend: Backend) -> Network | None:
    """The folder's network on the C kernels; None where they cannot run it and torch may. Raises RequestError."""
    config = weights.read_config(folder)
    map_large_allocations()
    try:
        network = CpuNetwork(folder, config, layers_for(config, threads))
    except (OSError, ValueError, MemoryError) as error:
        if backend == "native":
            raise RequestError(f"backend is 'native', but {error}; or use 'auto'") from error
        _log.warning("%s: torch runs the model, several times as slow", error)
        return None
    torch.set_num_threads(1)  # only small operations are left to torch
    return network


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
