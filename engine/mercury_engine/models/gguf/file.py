"""The GGUF format: metadata and tensors of a mapped file.

https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import contextlib
import math
import mmap
import reprlib
import struct
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mercury_kernels.cpu.blocks import TYPES, BlockMatrix, Bytes

from mercury_engine.errors import ModelCorrupt, ModelError, ModelNotFound

SUFFIX = ".gguf"

_MAGIC = b"GGUF"

_VERSIONS = (2, 3)

_MOST_ENTRIES = 1 << 20
"""A header with more metadata entries or tensors is damaged."""

_MOST_VALUES = 1 << 24
"""A header with longer arrays or texts is damaged."""

_MOST_DIMENSIONS = 4

_ALIGNMENT = 32
"""Bytes to which tensors are aligned unless `general.alignment` says otherwise."""

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Formats of `struct` by the kind of a value."""

_STRING, _ARRAY = 8, 9

_OTHER_TYPES = {10: "Q2_K", 11: "Q3_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL"}
_OTHER_TYPES |= {21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4"}
"""Names of types that cannot be loaded."""


class _Array(NamedTuple):
    """An array in the metadata, decoded on demand."""

    kind: int
    length: int
    start: int


class TensorInfo(NamedTuple):
    """A tensor's shape (outputs first), its type's number, and where its data start."""

    shape: tuple[int, ...]
    type: int
    start: int


class GgufFile:
    """A GGUF file, mapped into memory.

    Raises ModelCorrupt for a file that is damaged or truncated, ModelError for one that is only a part of a model.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as opened:
                self._map = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # an empty file cannot be mapped
            raise ModelCorrupt(f"{path} cannot be read ({error}); fetch it again") from error
        if self._map[:4] != _MAGIC:
            raise ModelCorrupt(f"{path} is no GGUF file; fetch it again")
        try:
            self._read_header()
        except (struct.error, ValueError, LookupError, OverflowError) as error:
            raise ModelCorrupt(f"{path} is truncated or damaged ({error}); fetch it again") from error
        if (parts := self.value("split.count", 0)) not in (0, 1):
            raise ModelError(
                f"{path} is one of {parts} parts; join them first: llama-gguf-split --merge FIRST-PART OUT"
            )

    def _read_header(self) -> None:
        (version,) = struct.unpack_from("<I", self._map, 4)
        if version not in _VERSIONS:
            raise ValueError(f"its version is {version}")
        tensors, entries = struct.unpack_from("<QQ", self._map, 8)
        _require_within(max(tensors, entries), _MOST_ENTRIES)
        self._at = 24
        self._values = {self._string(): self._value(self._take("I")) for _ in range(entries)}
        self.tensors = dict(self._tensor() for _ in range(tensors))
        alignment = self.value("general.alignment", _ALIGNMENT)
        if type(alignment) is not int or not 1 <= alignment <= _MOST_ENTRIES:
            raise ValueError(f"its tensors are aligned to {alignment!r}")
        self._data = -(-self._at // alignment) * alignment

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            return self._take(_NUMBERS[kind])
        kind, count = self._take("I"), _require_within(self._take("Q"), _MOST_VALUES)
        array = _Array(kind, count, self._at)
        if kind != _STRING:
            self._at += count * struct.calcsize(_NUMBERS[kind])
            return array
        for _ in range(count):  # not decoded
            size = _require_within(self._take("Q"), _MOST_VALUES)
            self._at += size
        return array

    def _tensor(self) -> tuple[str, TensorInfo]:
        name, dimensions = self._string(), _require_within(self._take("I"), _MOST_DIMENSIONS)
        shape = tuple(self._take("Q") for _ in range(dimensions))
        return name, TensorInfo(shape[::-1], self._take("I"), self._take("Q"))

    def _string(self) -> str:
        size = _require_within(self._take("Q"), _MOST_VALUES)
        self._at += size
        return self._map[self._at - size : self._at].decode("utf-8")

    def _take(self, form: str) -> Any:
        """The next number; struct.error beyond the end of the file."""
        (value,) = struct.unpack_from(f"<{form}", self._map, self._at)
        self._at += struct.calcsize(f"<{form}")
        return value

    def value(self, key: str, default: Any = None, kind: type = object) -> Any:
        """A value from the metadata; arrays are lists. Raises ModelCorrupt for one of another kind."""
        found = self._values.get(key, default)
        if isinstance(found, _Array):
            found = self._decoded(found)
        if not isinstance(found, kind):
            raise ModelCorrupt(
                f"{self.path}: {key} is {reprlib.repr(found)}, which is no {kind.__name__}; fetch it again"
            )
        return found

    def required(self, key: str) -> Any:
        """A value that a model needs. Raises ModelCorrupt."""
        if key not in self._values:
            raise ModelCorrupt(f"{self.path} lacks {key}; fetch or convert it again")
        return self.value(key)

    def _decoded(self, array: _Array) -> list[Any]:
        if array.kind != _STRING:
            return list(struct.unpack_from(f"<{array.length}{_NUMBERS[array.kind]}", self._map, array.start))
        found, at, size_of = list[str](), array.start, struct.Struct("<Q").unpack_from
        try:
            for _ in range(array.length):
                start = at + 8
                at = start + size_of(self._map, at)[0]
                found.append(self._map[start:at].decode("utf-8"))
        except UnicodeDecodeError as error:
            raise ModelCorrupt(f"{self.path} is damaged ({error}); fetch it again") from error
        return found

    def matrix(self, name: str) -> BlockMatrix:
        """A tensor as stored; a vector is one row. Raises ModelError for an unknown type, ModelCorrupt if truncated."""
        tensor = self.tensors[name]
        if (kind := TYPES.get(tensor.type)) is None:
            other = _OTHER_TYPES.get(tensor.type, f"number {tensor.type}")
            known = ", ".join(sorted(each.name for each in TYPES.values()))
            raise ModelError(
                f"{self.path}: {name} is quantised as {other}, which is not supported; fetch the model as Q4_K_M or "
                f"Q8_0 (supported: {known})"
            )
        *outputs, inputs = tensor.shape or (0,)
        rows = math.prod(outputs)
        start, row = self._data + tensor.start, inputs // kind.weights * kind.size
        if not rows * row or inputs % kind.weights or start + rows * row > len(self._map):
            raise ModelCorrupt(f"{self.path} is truncated or damaged: {name} ends after its end; fetch it again")
        data: Bytes = np.frombuffer(self._map, np.uint8, rows * row, start)
        return BlockMatrix(kind, data.reshape(rows, row))

    def release(self) -> None:
        """Take the file's pages out of this process's memory; they are mapped again when they are read."""
        with contextlib.suppress(AttributeError, OSError, ValueError):
            self._map.madvise(mmap.MADV_DONTNEED)


def _require_within(number: int, most: int) -> int:
    """The number. Raises ValueError for one that no model has."""
    if number > most:
        raise ValueError(f"its header asks for {number:,} of something, at most {most:,} make sense")
    return number


def opened(path: Path) -> GgufFile:
    """The mapped file; the header of the last one stays parsed. Raises what GgufFile raises."""
    try:
        found = path.stat()
    except OSError as error:
        raise ModelNotFound(f"{path} cannot be read ({error}); set mercury.model to a model that exists") from error
    return _opened(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=1)
def _opened(path: Path, _changed: int, _size: int) -> GgufFile:
    return GgufFile(path)


def gguf_of(model: Path) -> Path | None:
    """The GGUF file that a path names: a file, or a folder with no config.json and one such file; else None.

    Raises ModelNotFound for a folder with several.
    """
    if model.suffix == SUFFIX and model.is_file():
        return model
    if (model / "config.json").is_file():
        return None
    found = sorted(path for path in model.glob(f"*{SUFFIX}") if path.is_file())
    if len(found) > 1:
        raise ModelNotFound(f"{model} has {len(found)} GGUF files; set mercury.model to the path of one of them")
    return found[0] if found else None
