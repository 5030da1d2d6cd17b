"""Adapters on disk: low-rank changes for the rows after a context that the untouched model has read.

An adapter of a model is a file NAME.adapter.safetensors in its folder; that with which a masked model denoises is
adapter.safetensors. For every fused matrix it has the factors `layers.N.MATRIX.down` [N,in] and `.up` [out,N], as
floats, or as int8 codes, `.up` transposed, with a float16 scale for every rank. A named adapter's metadata tell its
format and the shape of its base. arXiv 2106.09685; that the context is read without it is arXiv 2504.12397.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from safetensors import SafetensorError, safe_open

from mercury_engine.errors import ModelCorrupt
from mercury_engine.models.network import ModelConfig
from mercury_engine.models.safetensors_files import StoredTensors
from mercury_engine.models.weights import StoredArray, checked

AdapterName = Literal["gap", "edit"]
"""What an adapter was trained for: to fill gaps, or to rewrite regions."""

NAMES: tuple[AdapterName, ...] = get_args(AdapterName)

SCALE = ".scale"
"""After the name of a factor: its scales."""

FORMAT = "mercury-adapter-1"
"""Version of the layout of requests that an adapter was trained on."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter's file and tensors."""

    name: AdapterName
    path: Path
    tensors: Mapping[str, StoredArray]


def file_name(name: AdapterName) -> str:
    return f"{name}.adapter.safetensors"


def read(folder: Path, config: ModelConfig) -> list[Adapter]:
    """The adapters of a model folder, for a model of this shape. Raises ModelCorrupt."""
    if not folder.is_dir():
        return []
    found = ((name, folder / file_name(name)) for name in NAMES)
    return [_read(name, path, config) for name, path in found if path.is_file()]


def _read(name: AdapterName, path: Path, config: ModelConfig) -> Adapter:
    known = metadata(path)
    if known.get("format") != FORMAT:
        raise ModelCorrupt(f"{path} is no adapter of this version; delete it, or fetch the model again")
    if known.get("base") != base_shape(config):
        raise ModelCorrupt(f"{path} belongs to a model of another shape ({known.get('base')}); delete it")
    return Adapter(name, path, unpacked(StoredTensors(path.parent, path.name), path))


def unpacked(stored: Mapping[str, StoredArray], path: Path) -> Mapping[str, StoredArray]:
    """The tensors, those in codes as floats. Raises ModelCorrupt."""
    found = dict[str, StoredArray]()
    for name in stored:
        if name.endswith(SCALE):
            continue
        codes, scale = stored[name], stored.get(name + SCALE)
        if codes.dtype != np.int8:
            found[name] = codes
            continue
        if scale is None or codes.ndim != 2 or scale.shape != (len(codes), 1):
            raise ModelCorrupt(f"{name} in {path} has no scale for each row; delete it, or fetch the model again")
        factor = codes * checked(scale, scale.shape, name + SCALE, path).astype(np.float32)
        found[name] = factor.T if name.endswith(".up") else factor
    return found


def metadata(path: Path) -> Mapping[str, str]:
    """What a safetensors file says about itself. Raises ModelCorrupt."""
    try:
        with safe_open(path, framework="np") as opened:
            return opened.metadata() or {}
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelCorrupt(f"{path} cannot be read ({error}); delete it, or fetch the model again") from error


def base_shape(config: ModelConfig) -> str:
    """What an adapter and its base must have in common, as text."""
    sizes = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    return json.dumps({size: getattr(config, size) for size in (*sizes, "vocab_size")})
