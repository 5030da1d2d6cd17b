"""Checks of a model folder that need not load it: is everything there, and whole?"""

from pathlib import Path

from mercury_engine.errors import ModelCorrupt, ModelNotFound


def check_config(folder: Path) -> None:
    """Raise ModelNotFound or ModelCorrupt unless the folder's configuration is of a model that can be run."""
    from mercury_engine.models.weights import read_config

    read_config(folder)


def check_folder(folder: Path) -> None:
    """Raise ModelNotFound or ModelCorrupt unless the folder has a configuration, a tokenizer and whole weight files."""
    from mercury_engine.prompt.tokenizer import Tokenizer

    check_config(folder)
    Tokenizer(folder)
    files = sorted(folder.glob("model*.safetensors"))
    if not files:
        gguf = "; it has GGUF files, which this version cannot load" if any(folder.glob("*.gguf")) else ""
        raise ModelNotFound(f"no model*.safetensors in {folder}{gguf}")
    for path in files:
        _check_whole(path)


def _check_whole(path: Path) -> None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy"):
            pass  # opening compares the header with the file's length
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelCorrupt(f"{path} is truncated or damaged ({error}); fetch it again") from error
