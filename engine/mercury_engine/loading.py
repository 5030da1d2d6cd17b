"""Loads a model: finds its folder, chooses the device, reads the settings and builds the parts of an engine."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mercury_engine.backend import Backend, Device, networks
from mercury_engine.decoding.calibration import Calibration
from mercury_engine.decoding.options import AutoregressiveOptions, DecodingOptions, DiffusionOptions
from mercury_engine.errors import ModelCorrupt, ModelNotFound
from mercury_engine.model_folders import BUNDLED_MODEL, INSTALLED, PACKAGED_MODELS, is_path, path_of, user_models
from mercury_engine.models import weights
from mercury_engine.models.gguf.file import gguf_of
from mercury_engine.models.network import ModelConfig, Network
from mercury_engine.prompt.edit_families import Family, family_of_folder
from mercury_engine.prompt.gap_format import GapMarkers
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_engine.utility import Utility

if TYPE_CHECKING:
    import torch

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelParts:
    """The parts an engine is built from."""

    folder: Path
    reader: Network
    """Reads context; of a causal model all that there is."""
    denoiser: Network | None
    """Denoises canvases; None for a causal model."""
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
    config, tokenizer = weights.read_config(folder), _tokenizer(folder)
    if config.adapter_rank and config.kind == "masked" and not weights.has_adapter(folder, config):
        raise ModelNotFound(
            f"no {weights.ADAPTER_FILES} in {folder}, with which this model denoises; "
            "fetch the model again, or choose another model"
        )
    reader, denoiser = networks(folder, device, dtype, threads, backend)
    settings = weights.read_settings(folder)
    kind: type[DecodingOptions] = AutoregressiveOptions if config.kind == "causal" else DiffusionOptions
    return ModelParts(
        folder,
        reader,
        denoiser,
        tokenizer,
        _fitted(kind, settings.decoding, folder),
        _fitted(Calibration, {"knots": settings.calibration}, folder),
        _fitted(Utility, settings.utility, folder),
        _markers(folder, settings, tokenizer, config),
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


def _tokenizer(folder: Path) -> Tokenizer:
    """The model's tokenizer. Raises ModelCorrupt if it has tokens that the weights have no row for."""
    tokenizer = Tokenizer(weights.base_of(folder))
    vocabulary = weights.read_config(folder).vocab_size
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


def _markers(
    folder: Path, settings: weights.ModelSettings, tokenizer: Tokenizer, config: ModelConfig
) -> GapMarkers | None:
    """The markers of the model's gap format: those of its vocabulary, unless it was taught to read plain blocks."""
    taught = bool(config.adapter_rank or weights.reader_change(folder))
    if settings.markers is False or (settings.markers is None and taught):
        return None
    if settings.markers and tokenizer.markers is None:
        raise ModelCorrupt(f"settings.json in {folder} asks for markers that its tokenizer.json lacks; fetch it again")
    return tokenizer.markers
