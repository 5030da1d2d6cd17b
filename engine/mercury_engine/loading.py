"""Loads a model: finds its folder, chooses the device and what runs its network there, and reads its settings.

The C kernels run a network on a CPU, torch on a GPU or for checking. Torch is optional: it is imported only where it
runs the model.
"""

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from mercury_kernels.installation import install_command

from mercury_engine.decoding.options import AutoregressiveOptions, Calibration, DecodingOptions, DiffusionOptions
from mercury_engine.errors import DeviceError, ModelCorrupt, ModelNotFound, RequestError
from mercury_engine.model_folders import BUNDLED_MODEL, INSTALLED, PACKAGED_MODELS, is_path, path_of, user_models
from mercury_engine.models import limits, weights
from mercury_engine.models.cpu import CpuNetwork, layers_for
from mercury_engine.models.gguf.file import gguf_of
from mercury_engine.models.gpu import has_torch, nvidia_gpus, why_without_cuda
from mercury_engine.models.memory import (
    collect_and_return_memory,
    map_large_allocations,
    return_freed_memory,
    unmap_library_code,
)
from mercury_engine.models.network import ModelConfig, Network
from mercury_engine.prompt.edit_families import Family, family_of_folder
from mercury_engine.prompt.gap_format import GapMarkers
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_engine.utility import Utility

if TYPE_CHECKING:
    import torch

T = TypeVar("T")

Backend = Literal["auto", "native", "torch"]

Device = Literal["auto", "cpu", "cuda"]

MOST_THREADS = 8
"""Largest default number of CPU threads; more bring little to so small a model."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelParts:
    """The parts an engine is built from."""

    folder: Path
    reader: Network
    tokenizer: Tokenizer
    options: DecodingOptions = field(default_factory=AutoregressiveOptions)
    calibration: Calibration = field(default_factory=Calibration)
    utility: Utility = field(default_factory=Utility)
    """When a fill is worth showing unasked."""
    markers: GapMarkers | None = None
    """Markers of the gap format in which the model reads; None for blocks without markers."""
    edit_family: Family | None = None
    """The family in whose format the model was trained to rewrite; None for the project's own layout."""


def load_model(
    path_or_name: str | Path | None, device: Device, threads: int | None, dtype: "torch.dtype | None", backend: Backend
) -> ModelParts:
    """Load the parts of a model; the arguments are those of `Engine.load`.

    Raises ModelNotFound, ModelCorrupt, and RequestError for a device or backend that is not available.
    """
    folder = find_model(path_or_name)
    config = weights.read_config(folder)
    tokenizer = _tokenizer(folder, config.vocab_size)
    if config.adapter_rank and config.kind == "masked" and not weights.has_adapter(folder, config):
        raise ModelNotFound(
            f"no {weights.ADAPTER_FILES} in {folder}, with which this model denoises; "
            "fetch the model again, or choose another model"
        )
    reader = _network(folder, config, device, dtype, threads, backend)
    settings = weights.read_settings(folder)
    kind: type[DecodingOptions] = AutoregressiveOptions if config.kind == "causal" else DiffusionOptions
    return ModelParts(
        folder,
        reader,
        tokenizer,
        _fitted(kind, settings.get("decoding", {}), folder),
        _fitted(Calibration, {"knots": settings.get("calibration", [])}, folder),
        _fitted(Utility, settings.get("utility", {}), folder),
        _markers(folder, settings.get("markers"), tokenizer, config),
        family_of_folder(folder, (config.name, folder.name)),
    )


def find_model(path_or_name: str | Path | None) -> Path:
    """The path of a model: a folder, a GGUF file, or an installed model; None is the bundled one.

    Text without a separator is a name, so that a folder in the working folder, which may be a repository, never takes
    the model's place. After `INSTALLED` only a name counts. Raises ModelNotFound.
    """
    if path_or_name is None:
        if not (BUNDLED_MODEL / "config.json").is_file():
            raise ModelNotFound(f"the bundled model is missing from {BUNDLED_MODEL}; reinstall mercury-lsp")
        return BUNDLED_MODEL
    if isinstance(path_or_name, str) and (path_or_name.startswith(INSTALLED) or not is_path(path_or_name)):
        return _installed(path_or_name.removeprefix(INSTALLED))
    path = path_of(path_or_name) if isinstance(path_or_name, str) else path_or_name
    if _is_model(path):
        return path
    raise ModelNotFound(
        f"no model folder and no GGUF file {path_or_name}; set mercury.model to a folder with config.json, to a GGUF "
        "file or to the name of an installed model, or leave it out"
    )


def _installed(name: str) -> Path:
    """The path of an installed model. Raises ModelNotFound, also for what is no plain name."""
    is_plain = Path(name).name == name and not name.startswith(".") and name not in ("", "~")
    if is_plain and (PACKAGED_MODELS / name / "config.json").is_file():
        return PACKAGED_MODELS / name
    if is_plain and _is_model(user_models() / name):
        return user_models() / name
    raise ModelNotFound(
        f"no model {name!r} is installed in {user_models()}; add it with mercury-lsp models add {name}, or set "
        "mercury.model to an installed one, to the absolute path of a folder, or leave it out"
    )


def _is_model(path: Path) -> bool:
    """Whether there is a folder or GGUF file. Raises ModelNotFound for a path that no file can have."""
    try:
        return path.is_dir() or gguf_of(path) is not None
    except (OSError, ValueError) as error:
        raise ModelNotFound(f"{str(path)!r} cannot be read ({error}); set mercury.model to another one") from error


def _tokenizer(folder: Path, vocabulary: int) -> Tokenizer:
    """The model's tokenizer. Raises ModelCorrupt if it has tokens that the weights have no row for."""
    tokenizer = Tokenizer(weights.base_of(folder))
    tokens = "tokenizer.json" if gguf_of(folder) is None else "the tokenizer"
    if tokenizer.size > vocabulary:
        raise ModelCorrupt(
            f"{tokens} in {folder} has tokens up to number {tokenizer.size - 1:,}, the weights have {vocabulary:,} "
            "rows; the files do not belong together"
        )
    if not 0 <= tokenizer.start_id < vocabulary:
        raise ModelCorrupt(f"{tokens} in {folder} begins texts with {tokenizer.start_id}, which is no token")
    return tokenizer


def _fitted(kind: type[T], values: dict[str, Any], folder: Path) -> T:
    """The fitted values of settings.json as an object. Raises ModelCorrupt."""
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        raise ModelCorrupt(f"{folder / 'settings.json'} is not valid ({error}); fetch the model again") from error


def _markers(folder: Path, wanted: bool | None, tokenizer: Tokenizer, config: ModelConfig) -> GapMarkers | None:
    """The markers of the model's gap format: those of its vocabulary, unless it was taught to read plain blocks."""
    taught = bool(config.adapter_rank or weights.reader_change(folder))
    if wanted is False or (wanted is None and taught):
        return None
    if wanted and tokenizer.markers is None:
        raise ModelCorrupt(f"settings.json in {folder} asks for markers that its tokenizer.json lacks; fetch it again")
    return tokenizer.markers


def _network(
    folder: Path,
    config: ModelConfig,
    device: Device,
    dtype: "torch.dtype | None",
    threads: int | None,
    backend: Backend,
) -> Network:
    """The model's network, ready to run. Raises RequestError when the device or the backend is not available."""
    wanted, device = device, _chosen(device)
    if backend == "native" and (device != "cpu" or dtype is not None):
        raise RequestError(
            "backend is 'native', which runs on a CPU and chooses its own precision; leave out device and dtype"
        )
    count = threads or max(1, min(MOST_THREADS, (os.cpu_count() or 2) // 2))
    if device == "cuda":
        try:
            return _on_gpu(folder, config, dtype, count)
        except DeviceError as error:
            if wanted == "cuda":
                raise
            _log.warning("%s; the model runs on the CPU", error)
            device = "cpu"
    limits.require_fit(config, weights.stored_files(folder))
    if device == "cpu" and dtype is None and backend != "torch" and (found := _native(folder, config, count, backend)):
        return found
    if not has_torch():
        raise RequestError(f"torch is not installed; {install_command('gpu')}, or leave out backend and dtype")
    from mercury_engine.device import torch_network

    return torch_network.load(folder, device, dtype, count)


def _on_gpu(folder: Path, config: ModelConfig, dtype: "torch.dtype | None", threads: int) -> Network:
    """The model's network on a GPU. Raises DeviceError where its memory does not suffice."""
    import torch
    from mercury_kernels import ops

    from mercury_engine.device import torch_network

    device = torch.device("cuda")
    dtype = dtype or torch_network.element_type(device)
    stays_coded = weights.has_codes(folder) and ops.why_not(device) is None
    memory = limits.GpuMemory(torch.cuda.mem_get_info()[0], dtype.itemsize, stays_coded).for_model(config)
    limits.require_fit(config, weights.stored_files(folder), memory)
    if memory.has_codes:
        _log.info("the layers' weights of %s have eight bits on the GPU", folder.name)
    try:
        return torch_network.load(folder, "cuda", dtype, threads, memory.has_codes)
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


def _native(folder: Path, config: ModelConfig, threads: int, backend: Backend) -> Network | None:
    """The model's network on the C kernels; None where they cannot run it and torch can. Raises RequestError."""
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
    return network
