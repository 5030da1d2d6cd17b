"""Checks of a model that need not load it: is everything there, and whole?"""

from pathlib import Path

from mercury_engine.errors import ModelCorrupt
from mercury_engine.models.gguf.file import gguf_of
from mercury_engine.models.safetensors_files import weight_files


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
        for path in weight_files(folder):
            _check_whole(path)


def _check_whole(path: Path) -> None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy"):
            pass  # opening compares the header with the file's length
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelCorrupt(f"{path} is truncated or damaged ({error}); fetch it again") from error
