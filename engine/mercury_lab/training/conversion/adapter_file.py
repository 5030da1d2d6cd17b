"""Writes the files that `mercury_engine.models.weights` reads."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from mercury_engine.models.network import ModelConfig
from mercury_engine.models.tensors import SCALE
from mercury_engine.models.weights import ADAPTER_FORMAT, base_shape
from numpy.typing import NDArray
from safetensors.numpy import save_file

_LARGEST_CODE = 127


def write_adapter(path: Path, config: ModelConfig, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write an adapter's file for a model of this shape, from its factors by name."""
    save_file(packed(tensors), path, {"format": ADAPTER_FORMAT, "base": base_shape(config)})


def packed(tensors: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The tensors with factors as codes and scales, and others as float32."""
    stored = dict[str, NDArray[Any]]()
    for name, tensor in tensors.items():
        if name.endswith((".down", ".up")):
            codes, scale = _packed(tensor.T if name.endswith(".up") else tensor)
            stored |= {name: np.ascontiguousarray(codes), name + SCALE: scale}
        else:
            stored[name] = tensor.astype(np.float32)
    return stored


def _packed(factor: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Codes int8 and scales float16 [rows,1] of floats, a scale for every row."""
    rows = factor.astype(np.float32)
    scale = (np.abs(rows).max(1, keepdims=True) / _LARGEST_CODE).astype(np.float16)
    steps = rows / np.maximum(scale, np.finfo(np.float16).smallest_subnormal).astype(np.float32)
    return np.clip(np.rint(steps), -_LARGEST_CODE, _LARGEST_CODE).astype(np.int8), scale
