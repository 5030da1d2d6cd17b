"""Adapters on disk: low-rank changes for the rows behind a context that the untouched model has read.

An adapter of a model is a file NAME.adapter.safetensors in its folder, with `layers.N.MATRIX.down` [N,in] and `.up`
[out,N] for every fused matrix, and metadata that name its format and the shape of its base. arXiv 2106.09685; that the
context is read without it is arXiv 2504.12397.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from mercury_engine.errors import ModelCorrupt
from mercury_engine.models.network import ModelConfig
from mercury_engine.models.safetensors_files import StoredTensors
from mercury_engine.models.weights import StoredArray

AdapterName = Literal["gap", "edit"]
"""What an adapter was trained for: to fill gaps, or to rewrite regions."""

NAMES: tuple[AdapterName, ...] = get_args(AdapterName)

FORMAT = "mercury-adapter-1"
"""Version of the layout of requests that an adapter was trained on."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter's file and tensors."""

    name: AdapterName
    path: Path
    tensors: Mapping[str, StoredArray]


def file_name(name: AdapterName) -> str:
    """The name of an adapter's file."""
    return f"{name}.adapter.safetensors"


def read(folder: Path, config: ModelConfig) -> list[Adapter]:
    """The adapters of a model folder, for a model of this shape. Raises ModelCorrupt."""
    if not folder.is_dir():
        return []
    found = ((name, folder / file_name(name)) for name in NAMES)
    return [_read(name, path, config) for name, path in found if path.is_file()]


def _read(name: AdapterName, path: Path, config: ModelConfig) -> Adapter:
    known = _metadata(path)
    if known.get("format") != FORMAT:
        raise ModelCorrupt(f"{path} is no adapter of this version; delete it, or fetch the model again")
    if known.get("base") != base_shape(config):
        raise ModelCorrupt(f"{path} belongs to a model of another shape ({known.get('base')}); delete it")
    return Adapter(name, path, StoredTensors(path.parent, path.name))


def _metadata(path: Path) -> Mapping[str, str]:
    try:
        with safe_open(path, framework="np") as opened:
            return opened.metadata() or {}
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelCorrupt(f"{path} cannot be read ({error}); delete it, or fetch the model again") from error


def base_shape(config: ModelConfig) -> str:
    """What an adapter and its base must have in common, as text."""
    sizes = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    return json.dumps({size: getattr(config, size) for size in (*sizes, "vocab_size")})


def write(path: Path, config: ModelConfig, tensors: Mapping[str, StoredArray]) -> None:
    """Write an adapter's file for a model of this shape."""
    header = {"format": FORMAT, "base": base_shape(config)}
    save_file({name: np.ascontiguousarray(each) for name, each in tensors.items()}, path, header)
