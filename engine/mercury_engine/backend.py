"""Chooses the implementation that runs a model's network: the C kernels on a CPU, torch on a GPU or for checking.

Torch is optional: it is imported only where it runs the model.
"""

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from mercury_kernels.installation import install_command

from mercury_engine.errors import DeviceError, RequestError
from mercury_engine.models import limits, weights
from mercury_engine.models.cpu import CpuNetwork, layers_for
from mercury_engine.models.gpu import has_torch, nvidia_gpus, why_without_cuda
from mercury_engine.models.memory import (
    collect_and_return_memory,
    map_large_allocations,
    return_freed_memory,
    unmap_library_code,
)
from mercury_engine.models.network import Network

if TYPE_CHECKING:
    import torch

Backend = Literal["auto", "native", "torch"]

Device = Literal["auto", "cpu", "cuda"]

MOST_THREADS = 8
"""Largest default number of CPU threads; more bring little to so small a model."""

_log = logging.getLogger(__name__)


class Networks(NamedTuple):
    """The network that reads a model's context, and for a masked model the one that denoises."""

    reader: Network
    denoiser: Network | None


def networks(
    folder: Path, device: Device, dtype: "torch.dtype | None", threads: int | None, backend: Backend
) -> Networks:
    """The folder's networks, ready to run.

    `threads` is the number of CPU threads; None is half the processors. Raises RequestError when the device or the
    backend is not available.
    """
    wanted, device = device, _chosen(device)
    if backend == "native" and (device != "cpu" or dtype is not None):
        raise RequestError(
            "backend is 'native', which runs on a CPU and chooses its own precision; leave out device and dtype"
        )
    count = threads or max(1, min(MOST_THREADS, (os.cpu_count() or 2) // 2))
    if device == "cuda":
        try:
            return _on_gpu(folder, dtype, count)
        except DeviceError as error:
            if wanted == "cuda":
                raise
            _log.warning("%s; the model runs on the CPU", error)
            device = "cpu"
    limits.require_fit(weights.read_config(folder), weights.stored_files(folder))
    if device == "cpu" and dtype is None and backend != "torch" and (found := _native(folder, count, backend)):
        return found
    if not has_torch():
        raise RequestError(f"torch is not installed; {install_command('gpu')}, or leave out backend and dtype")
    from mercury_engine.device import torch_network

    return Networks(*torch_network.load(folder, device, dtype, count))


def _on_gpu(folder: Path, dtype: "torch.dtype | None", threads: int) -> Networks:
    """The folder's networks on a GPU. Raises DeviceError where its memory does not suffice."""
    import torch
    from mercury_kernels import ops

    from mercury_engine.device import torch_network

    device, config = torch.device("cuda"), weights.read_config(folder)
    dtype = dtype or torch_network.element_type(device)
    stays_coded = weights.has_codes(folder) and ops.why_not(device) is None
    memory = limits.GpuMemory(torch.cuda.mem_get_info()[0], dtype.itemsize, stays_coded).for_model(config)
    limits.require_fit(config, weights.stored_files(folder), memory)
    if memory.has_codes:
        _log.info("the layers' weights of %s have eight bits on the GPU", folder.name)
    try:
        return Networks(*torch_network.load(folder, "cuda", dtype, threads, memory.has_codes))
    except torch.OutOfMemoryError as error:
        short = str(error).splitlines()[0]
    collect_and_return_memory()
    torch.cuda.empty_cache()
    raise DeviceError(
        f"{folder.name} does not fit the GPU's memory ({short}); close other programs that use the GPU, choose a "
        "smaller model, or set mercury.device to 'cpu'"
    )


def _chosen(wanted: Device) -> Literal["cpu", "cuda"]:
    """The device to use. Raises RequestError."""
    if wanted == "cpu":
        return "cpu"
    gpus = nvidia_gpus()
    if wanted == "auto" and not gpus:
        _log.info("no CUDA device: the model runs on the CPU")
        return "cpu"
    reason = why_without_cuda()
    if reason is None:
        return "cuda"
    if wanted == "cuda":
        raise RequestError(f"device is 'cuda', but {reason}; or set mercury.device to 'cpu' or 'auto'")
    _log.warning("%s is not used: %s; the model runs on the CPU", gpus[0], reason)
    return "cpu"


def _native(folder: Path, threads: int, backend: Backend) -> Networks | None:
    """The folder's networks on the C kernels; None where they cannot run it and torch can. Raises RequestError."""
    config = weights.read_config(folder)
    map_large_allocations()
    try:
        network = CpuNetwork(folder, config, layers_for(config, threads))
    except (OSError, ValueError, MemoryError) as error:
        if backend == "native":
            raise RequestError(f"backend is 'native', but {error}; or use 'auto'") from error
        if not has_torch():
            raise RequestError(
                f"{error}; or let torch run the model, several times as slow: {install_command('gpu')}"
            ) from error
        _log.warning("%s: torch runs the model, several times as slow", error)
        return None
    return_freed_memory()
    unmap_library_code()
    return Networks(network, network if config.adapter_rank else None)
