"""A model's tensors, checked as they are read: those of either kind of file, and here those of safetensors files.

Names are those of the Hugging Face checkpoints. In safetensors a tensor is float32, float16 or bfloat16, or packed.
Matrices of a model are packed in groups of 32 inputs, with the arithmetic of GGUF's Q4_1 and Q8_0; factors of low-rank
changes with a scale for each rank:
  NAME.q4 uint8 [out, in/2] (low nibble first half of a group), NAME.scale and NAME.low float16 [out, in/32]:
      weight = code * scale + low
  NAME.q8 int8 [out, in], NAME.scale float16 [out, in/32]: weight = code * scale
  NAME int8 [rank, in] or, for `.up`, [rank, out], NAME.scale float16 [rank, 1]: factor = code * scale

The format: https://huggingface.co/docs/safetensors
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from mercury_kernels.cpu.blocks import BF16, F16, F32, Q4_1, Q8_0, BlockMatrix, Floats
from numpy.typing import NDArray

from mercury_engine.errors import ModelCorrupt, ModelNotFound
from mercury_engine.model_folders import MOST_JSON_BYTES, read_json

WEIGHT_FILES = "model*.safetensors"

INDEX = "model.safetensors.index.json"
"""Optional file: which shard has which tensor."""

SCALE = ".scale"
"""After the name of codes: their scales."""

_FLOATS = {"F32": F32, "F16": F16, "BF16": BF16}

_BYTES = {"F32": 4, "F16": 2, "BF16": 2, "I8": 1, "U8": 1}
"""Size of a number of each type that can be read."""

_PACKED = {".q4": (Q4_1, (SCALE, ".low", ".q4")), ".q8": (Q8_0, (SCALE, ".q8"))}
"""The blocks that packed codes make up, and the parts of a block, by what follows the tensor's name."""


class _Entry(NamedTuple):
    """Where a tensor is stored."""

    path: Path
    type: str
    shape: tuple[int, ...]
    start: int


class Tensors(ABC):
    """A model's tensors. The methods raise ModelCorrupt for missing or damaged ones."""

    path: Path
    """The file or folder, for messages."""
    names: Mapping[str, str]
    """The name that each tensor is stored under, by its name in a checkpoint."""

    @abstractmethod
    def _read(self, name: str) -> BlockMatrix:
        """A tensor as it is stored; whatever is raised means that it is missing or damaged."""

    def matrix(self, name: str) -> BlockMatrix:
        """A tensor as it is stored; a vector is a matrix of one row."""
        try:
            return self._read(name)
        except (OSError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ModelCorrupt(
                f"{name} in {self.path} is missing or damaged ({error!r}); fetch or export it again"
            ) from error

    def parts(self, names: Sequence[str], shape: tuple[int, int]) -> list[BlockMatrix]:
        """The tensors that make up a matrix [out,in], one below the other."""
        parts = [self.matrix(name) for name in names]
        found = sum(part.outputs for part in parts), *{part.inputs for part in parts}
        if found != shape:
            raise ModelCorrupt(
                f"{' + '.join(names)} in {self.path} has shape {list(found)}, the configuration asks for "
                f"{list(shape)}; the files do not belong together"
            )
        return parts

    def floats(self, name: str, *shape: int) -> Floats:
        """The finite values of a vector or a matrix of this shape."""
        [matrix] = self.parts([name], (shape[0] if len(shape) == 2 else 1, shape[-1]))
        return self.finite(name, matrix.floats()).reshape(shape)

    def finite(self, name: str, values: Floats) -> Floats:
        """The values of a tensor, if all of them are finite."""
        with np.errstate(over="ignore", invalid="ignore"):  # a finite sum is proof, and faster than a look at each
            if not (np.isfinite(values.sum(dtype=np.float32)) or np.isfinite(values).all()):
                raise ModelCorrupt(
                    f"{name} in {self.path} holds values that are not finite; fetch or export the model again"
                )
        return values

    def product(self, name: str, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        """The factors [rank,in] and [out,rank] of a low-rank change to a matrix [out,in]."""
        rank = self.matrix(f"{name}.down").outputs
        return self.floats(f"{name}.down", rank, shape[1]), self.floats(f"{name}.up", shape[0], rank)


class StoredTensors(Tensors):
    """The tensors of a folder's weight files, by name; each is read when it is asked for.

    Raises ModelNotFound without such a file, and ModelCorrupt for a damaged one, also when a tensor is read.
    """

    def __init__(self, folder: Path, pattern: str = WEIGHT_FILES) -> None:
        files = weight_files(folder, pattern)
        self.path = files[0] if len(files) == 1 else folder
        self.metadata: dict[str, str] = {}
        self._entries: dict[str, _Entry] = {}
        for path in files:
            try:
                self._read_header(path)
            except (OSError, AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
                raise _damaged(path, error) from error
        plain = ((name.removesuffix(".q4").removesuffix(".q8"), name) for name in self._entries)
        self.names = {name: stored for name, stored in plain if not name.endswith((SCALE, ".low"))}

    def _read_header(self, path: Path) -> None:
        with path.open("rb") as file:
            size, whole = int.from_bytes(file.read(8), "little"), path.stat().st_size
            if size > min(whole, MOST_JSON_BYTES):
                raise ValueError(f"a header of {size:,} bytes")
            header = json.loads(file.read(size))
        self.metadata |= header.pop("__metadata__", None) or {}
        for name, entry in header.items():
            shape, (start, end) = tuple(entry["shape"]), entry["data_offsets"]
            if not all(type(each) is int and each >= 0 for each in (*shape, start, end)):
                raise ValueError(f"{name} has shape {shape} from {start} to {end}")
            stored = math.prod(shape) * _BYTES.get(entry["dtype"], 0)
            if (stored and end - start != stored) or 8 + size + end > whole:
                raise ValueError(f"{name} ends at {end:,} of {whole:,} bytes")
            self._entries[name] = _Entry(path, entry["dtype"], shape, 8 + size + start)

    def _read(self, name: str) -> BlockMatrix:
        stored = self.names[name]
        entry = self._entries[stored]
        if packed := _PACKED.get(stored.removeprefix(name)):
            kind, parts = packed
            shape = *self._entries[name + SCALE].shape, -1
            blocks = np.concatenate([self._bytes(name + part).reshape(shape) for part in parts], -1)
            if blocks.shape[-1] != kind.size:
                raise ValueError(f"its parts have other shapes than {list(shape[:2])}")
            return BlockMatrix(kind, blocks.reshape(len(blocks), -1))
        if entry.type == "I8":
            scales = self._bytes(name + SCALE).view(np.float16)
            factor = self._bytes(name).view(np.int8).reshape(entry.shape) * scales.astype(np.float32).reshape(-1, 1)
            return BlockMatrix.of_floats(factor.T if name.endswith(".up") else factor)
        rows = entry.shape[0] if len(entry.shape) > 1 else 1
        return BlockMatrix(_FLOATS[entry.type], self._bytes(name).reshape(rows, -1))

    def _bytes(self, name: str) -> NDArray[np.uint8]:
        entry = self._entries[name]
        return np.fromfile(entry.path, np.uint8, math.prod(entry.shape) * _BYTES[entry.type], offset=entry.start)


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
        return [Path(str(name)).name for name in read_json(index)["weight_map"].values()]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(index, error) from error


def _damaged(path: Path, error: Exception) -> ModelCorrupt:
    return ModelCorrupt(f"{path} cannot be read ({error}); it is damaged: fetch or export it again")
