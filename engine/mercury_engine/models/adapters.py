"""Adapters on disk: low-rank changes for the rows after a context that the untouched model has read.

An adapter of a model is a file NAME.adapter.safetensors in its folder; that with which a masked model denoises is
adapter.safetensors. For every fused matrix it has the factors `layers.N.MATRIX.down` [N,in] and `.up` [out,N]. The
metadata of a named adapter give its format and the shape of its base. Low-rank changes are from arXiv 2106.09685,
reading the context without them from arXiv 2504.12397.
"""

import json
from pathlib import Path
from typing import Literal, get_args

from mercury_engine.errors import ModelCorrupt
from mercury_engine.models.network import ModelConfig
from mercury_engine.models.safetensors_files import StoredTensors

AdapterName = Literal["gap", "edit"]
"""What an adapter was trained for: to fill gaps, or to rewrite regions."""

NAMES: tuple[AdapterName, ...] = get_args(AdapterName)

FORMAT = "mercury-adapter-1"
"""Version of the layout of requests that an adapter was trained on."""


def file_name(name: AdapterName) -> str:
    return f"{name}.adapter.safetensors"


def read(folder: Path, config: ModelConfig) -> dict[AdapterName, StoredTensors]:
    """The adapters of a model folder, for a model of this shape. Raises ModelCorrupt."""
    found = dict[AdapterName, StoredTensors]()
    for name in NAMES:
        path = folder / file_name(name)
        if not path.is_file():
            continue
        found[name] = StoredTensors(folder, path.name)
        said = found[name].metadata
        if said.get("format") != FORMAT:
            raise ModelCorrupt(f"{path} is no adapter of this version; delete it, or fetch the model again")
        if said.get("base") != base_shape(config):
            raise ModelCorrupt(f"{path} belongs to a model of another shape ({said.get('base')}); delete it")
    return found


def base_shape(config: ModelConfig) -> str:
    """What an adapter and its base must have in common, as text."""
    sizes = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    return json.dumps({size: getattr(config, size) for size in (*sizes, "vocab_size")})
