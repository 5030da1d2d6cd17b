"""A block drafter on disk: `drafter.safetensors` beside the weights of the reader that it was trained for.

Matrices are packed in four or eight bits, as in `weights`; the metadata name the format and the shape of the reader.
What the tensors mean is in `drafter`.

Dimensions: S slots, C width, F features, K draft vocabulary, V vocabulary, N rank of the Markov head.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mercury_kernels.cpu.blocks import GROUP
from mercury_kernels.cpu.layers import MATRICES, QuantizedMatrix
from numpy.typing import NDArray
from safetensors.numpy import save_file

from mercury_engine.errors import ModelCorrupt
from mercury_engine.models import adapters, quantized_weights
from mercury_engine.models.arrays import FloatArray
from mercury_engine.models.network import ModelConfig
from mercury_engine.models.safetensors_files import StoredTensors
from mercury_engine.models.weights import StoredArray, checked

FILE = "drafter.safetensors"

FORMAT = "mercury-drafter-1"

MAX_SLOTS, MAX_RANK = 16, 1024


@dataclass(frozen=True, slots=True)
class DrafterTensors:
    """The tensors of a drafter's file, and its sizes."""

    path: Path
    plain: Mapping[str, FloatArray]
    matrices: Mapping[str, QuantizedMatrix]
    """`fuse` [2C,F], `before` [V,N], `after` [K,N], and the layer's."""
    vocabulary: NDArray[np.integer[Any]]


def features_width(config: ModelConfig) -> int:
    """F: a hidden state, the values of three layers and an embedding."""
    return 2 * config.hidden_size + 3 * config.num_key_value_heads * config.head_dim


def featured_layers(config: ModelConfig) -> list[int]:
    """The layers whose values are features."""
    return [config.num_hidden_layers * fifths // 5 for fifths in (2, 3, 4)]


def runs(config: ModelConfig) -> bool:
    """Whether a model of this kind can have a drafter: its layers have neither biases nor norms of heads."""
    return config.is_plain and not config.attention_bias


def read(folder: Path, config: ModelConfig) -> DrafterTensors | None:
    """The folder's drafter, checked for a reader of this shape; None without a file. Raises ModelCorrupt."""
    path = folder / FILE
    if not path.is_file():
        return None
    known = adapters.metadata(path)
    if known.get("format") != FORMAT:
        raise ModelCorrupt(f"{path} is no drafter of this version; delete it, or fetch the model again")
    if known.get("base") != adapters.base_shape(config) or not runs(config):
        raise ModelCorrupt(f"{path} belongs to a model of another shape ({known.get('base')}); delete it")
    state = StoredTensors(folder, path.name)
    return _checked(path, {name: state[name] for name in state}, config)


def _checked(path: Path, state: Mapping[str, StoredArray], config: ModelConfig) -> DrafterTensors:
    """Raises ModelCorrupt."""
    plain, matrices = dict[str, FloatArray](), dict[str, QuantizedMatrix]()
    try:
        vocabulary, slots, rank = state["vocabulary"], len(state["places"]), state["before.q8"].shape[1]
    except (KeyError, IndexError, TypeError) as error:
        raise ModelCorrupt(f"{path} lacks {error}; delete it, or fetch the model again") from error
    if not (1 <= slots <= MAX_SLOTS and GROUP <= rank <= MAX_RANK and rank % GROUP == 0):
        raise ModelCorrupt(f"{path} has {slots} slots and rank {rank}; delete it, or fetch the model again")
    if vocabulary.dtype != np.int32 or vocabulary.ndim != 1 or not _is_ascending(vocabulary, config.vocab_size):
        raise ModelCorrupt(f"the vocabulary in {path} is no rising list of tokens; delete it, or fetch the model again")
    for name, shape in _plain_shapes(config, slots).items():
        if name not in state:
            raise ModelCorrupt(f"{path} lacks {name}; delete it, or fetch the model again")
        plain[name] = checked(state[name], shape, name, path).astype(np.float32)
    for name, shape in _matrix_shapes(config, rank, len(vocabulary)).items():
        if not (found := quantized_weights.stored(state, [name], shape, path)):
            raise ModelCorrupt(f"{path} lacks {name}; delete it, or fetch the model again")
        assert isinstance(found[0], QuantizedMatrix), "no blocks in safetensors"
        matrices[name] = found[0]
    return DrafterTensors(path, plain, matrices, vocabulary)


def _plain_shapes(config: ModelConfig, slots: int) -> dict[str, tuple[int, ...]]:
    width = config.hidden_size
    shapes = dict[str, tuple[int, ...]].fromkeys(("attention_norm", "feed_forward_norm", "norm"), (width,))
    return shapes | {
        "places": (slots, width),
        "gain": (slots,),
        "scale": (features_width(config),),
    }


def _matrix_shapes(config: ModelConfig, rank: int, size: int) -> dict[str, tuple[int, int]]:
    width, inner = config.hidden_size, config.intermediate_size
    kept, asked = (heads * config.head_dim for heads in (config.num_key_value_heads, config.num_attention_heads))
    return {
        "fuse": (2 * width, features_width(config)),
        "qkv": (asked + 2 * kept, width),
        "out": (width, asked),
        "gate_up": (2 * inner, width),
        "down": (width, inner),
        "before": (config.vocab_size, rank),
        "after": (size, rank),
    }


def _is_ascending(ids: StoredArray, size: int) -> bool:
    return bool(len(ids)) and bool((np.diff(ids) > 0).all()) and int(ids[0]) >= 0 and int(ids[-1]) < size


def write(path: Path, config: ModelConfig, tensors: Mapping[str, FloatArray], vocabulary: StoredArray) -> None:
    """Write a drafter's file from its tensors as floats; matrices are packed. Raises ModelCorrupt for wrong ones."""
    stored = dict[str, StoredArray](vocabulary=np.asarray(vocabulary, np.int32))
    for name, tensor in tensors.items():
        if name in ("before", "after"):
            stored |= _in_eight_bits(name, tensor)
        elif name in ("fuse", *MATRICES):
            stored |= _in_four_bits(name, tensor)
        else:
            stored[name] = np.ascontiguousarray(tensor, np.float32)
    _checked(path, stored, config)
    save_file(stored, path, {"format": FORMAT, "base": adapters.base_shape(config)})


def _in_eight_bits(name: str, matrix: FloatArray) -> dict[str, StoredArray]:
    """Codes int8 [out,in] and scales float16 [out,in/32]."""
    groups = np.ascontiguousarray(matrix, np.float32).reshape(len(matrix), -1, GROUP)
    scale = (np.abs(groups).max(-1) / 127).astype(np.float16)
    codes = np.clip(np.rint(groups / _divisor(scale)), -127, 127).astype(np.int8)
    return {f"{name}.q8": codes.reshape(matrix.shape), f"{name}.scale": scale}


def _in_four_bits(name: str, matrix: FloatArray) -> dict[str, StoredArray]:
    """Codes uint8 [out,in/2], scales and low ends float16 [out,in/32]."""
    groups = np.ascontiguousarray(matrix, np.float32).reshape(len(matrix), -1, GROUP)
    low = groups.min(-1).astype(np.float16)
    scale = ((groups.max(-1) - low) / 15).astype(np.float16)
    steps = (groups - low[..., None].astype(np.float32)) / _divisor(scale)
    codes = np.clip(np.rint(steps), 0, 15).astype(np.uint8)
    halves = codes[..., : GROUP // 2] | codes[..., GROUP // 2 :] << 4
    return {f"{name}.q4": halves.reshape(len(matrix), -1), f"{name}.scale": scale, f"{name}.low": low}


def _divisor(scale: StoredArray) -> FloatArray:
    """The scales as divisors [out,in/32,1], none of them 0."""
    return np.maximum(scale, np.finfo(np.float16).smallest_subnormal).astype(np.float32)[..., None]
