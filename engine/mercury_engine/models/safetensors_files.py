"""The tensors of safetensors files: one file, or the shards that an index lists."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (makes NumPy and safetensors know bfloat16)
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from mercury_engine.errors import ModelCorrupt, ModelNotFound
from mercury_engine.models import json_files

WEIGHT_FILES = "model*.safetensors"

INDEX = "model.safetensors.index.json"
"""Optional file: which shard has which tensor."""


class StoredTensors(Mapping[str, NDArray[Any]]):
    """The tensors of a folder's weight files, by name; each is read when it is asked for.

    Raises ModelNotFound without such a file, and ModelCorrupt for a damaged one, also when a tensor is read.
    """

    def __init__(self, folder: Path, pattern: str = WEIGHT_FILES) -> None:
        self._opened: dict[str, tuple[Path, Any]] = {}
        for path in weight_files(folder, pattern):
            try:
                _touch(path)
                opened = safe_open(path, framework="np")
                self._opened.update(dict.fromkeys(opened.keys(), (path, opened)))
            except (SafetensorError, OSError, ValueError) as error:
                raise _damaged(path, error) from error

    def __getitem__(self, name: str) -> NDArray[Any]:
        path, opened = self._opened[name]
        try:
            found: NDArray[Any] = opened.get_tensor(name)
        except (SafetensorError, OSError, ValueError, AttributeError, TypeError) as error:
            raise _damaged(path, error) from error
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._opened)

    def __len__(self) -> int:
        return len(self._opened)

    def __contains__(self, name: object) -> bool:
        return name in self._opened


def _touch(path: Path) -> None:
    """Read a byte, as Python does: without holding the interpreter, which `safe_open` holds while a disk is stalled."""
    with path.open("rb", buffering=0) as file:
        file.read(1)


def weight_files(folder: Path, pattern: str = WEIGHT_FILES) -> list[Path]:
    """The folder's weight files: the index's shards, or all that match. Raises ModelNotFound and ModelCorrupt."""
    index = folder / INDEX
    if pattern == WEIGHT_FILES and index.is_file():
        shards = [folder / name for name in sorted(set(_shards(index)))]
        if missing := [path.name for path in shards if not path.is_file()]:
            raise ModelNotFound(f"{folder} lacks {', '.join(missing)}, which {INDEX} lists; fetch the model again")
        return shards
    files = sorted(path for path in folder.glob(pattern) if path.is_file())  # a pipe would never open
    if not files:
        raise ModelNotFound(f"no {pattern} and no GGUF file in {folder}; set mercury.model to a model's folder")
    return files


def _shards(index: Path) -> list[str]:
    """The shard of each tensor. Raises ModelCorrupt."""
    try:
        return [Path(str(name)).name for name in json_files.read(index)["weight_map"].values()]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(index, error) from error


def _damaged(path: Path, error: Exception) -> ModelCorrupt:
    return ModelCorrupt(f"{path} cannot be read ({error}); it is damaged: fetch or export it again")
