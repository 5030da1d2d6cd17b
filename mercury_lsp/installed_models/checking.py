"""Checks that a model is complete and undamaged, without loading it."""

from pathlib import Path

from mercury_engine.models.gguf.file import gguf_of
from mercury_engine.models.tensors import StoredTensors, Tensors, weight_files


def check_config(folder: Path) -> None:
    """Raise ModelError unless the model's configuration is of a model that can be run."""
    from mercury_engine.models.weights import read_config

    read_config(folder)


def check_folder(folder: Path) -> None:
    """Raise ModelError unless the model has a configuration, a tokenizer and whole weight files."""
    from mercury_engine.prompt.tokenizer import Tokenizer

    check_config(folder)  # of a GGUF file this finds every tensor
    Tokenizer(folder)
    if gguf_of(folder) is None:
        StoredTensors(folder)  # compares each header with its file's length


def check_values(folder: Path) -> list[Path]:
    """Read every value of the model's weight files, including its adapters', and return the files; takes seconds.

    Raises ModelError for a file that is damaged or holds values that are not finite.
    """
    from mercury_engine.models import weights
    from mercury_engine.models.gguf.checkpoint import GgufTensors
    from mercury_engine.models.gguf.file import opened

    config = weights.read_config(folder)
    if (gguf := gguf_of(folder)) is not None:
        _require_finite(GgufTensors(opened(gguf)))
        return [gguf]
    files = sorted({*weight_files(folder), *(path for path in folder.glob("*.safetensors") if path.is_file())})
    for path in files:
        _require_finite(StoredTensors(folder, path.name))
    weights.read_adapters(folder, config)
    return files


def _require_finite(tensors: Tensors) -> None:
    for name in tensors.names:
        tensors.finite(name, tensors.matrix(name).floats())
