"""Weights for the decoder in torch: read from a model folder."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mercury_engine.models import adapters, weights
from mercury_engine.models.adapters import Adapter
from mercury_engine.models.arrays import bfloat16
from mercury_engine.models.decoder import AdaptedLinear, Layer, TorchDecoder
from mercury_engine.models.network import ModelConfig
from mercury_engine.models.safetensors_files import StoredTensors
from mercury_engine.models.weights import (
    FUSED_MATRICES,
    HEAD_NORMS,
    LOADER_THREADS,
    READER_FILE,
    StoredArray,
    adapter_tensor,
    checked,
    joined,
    low_rank,
    matrix_names,
)


def load(folder: Path, dtype: torch.dtype, device: torch.device) -> TorchDecoder:
    """The network of a model folder, with the writer's adapter if there is one."""
    config = weights.read_config(folder)
    network = _unfilled(config, dtype, device)
    fill_reader(network, folder)
    if weights.has_adapter(folder, config):
        stored = StoredTensors(folder, weights.ADAPTER_FILES)
        fill_adapter(network, adapters.unpacked(stored, folder), folder)
    for adapter in adapters.read(folder, config):
        _put_named(network, adapter, dtype)
    return network


@torch.no_grad()
def _unfilled(config: ModelConfig, dtype: torch.dtype, device: torch.device) -> TorchDecoder:
    """An empty network on its device, to be filled a layer at a time: the host never holds all weights."""
    with torch.device("meta"):
        network = TorchDecoder(config).to(dtype)
    network = network.to_empty(device=device)
    network.markers.zero_()  # no file holds the markers of a plain reader
    return network


def _put_named(network: TorchDecoder, adapter: Adapter, dtype: torch.dtype) -> None:
    """Load an adapter that forwards ask for by name. Raises ModelCorrupt."""
    for number, layer in enumerate(network.layers):
        for matrix in FUSED_MATRICES:
            linear: AdaptedLinear = getattr(layer, matrix)
            outputs, inputs = linear.weight.shape
            name = f"layers.{number}.{matrix}"
            down, up = low_rank(adapter.tensors, name, (outputs, inputs), adapter.path)
            a, b = (tensor_of(np.ascontiguousarray(factor)) for factor in (down, up))
            linear.named[adapter.name] = a.to(network.device, dtype), b.to(network.device, dtype)


def fill_reader(network: TorchDecoder, folder: Path) -> None:
    """Copy the folder's weights into the network, with the change from `reader.safetensors` if there is one."""
    fill(network, weights.read_model(folder), folder, weights.reader_change(folder))


def fill(
    network: TorchDecoder, state: weights.State, folder: Path, change: Mapping[str, StoredArray] | None = None
) -> None:
    """Copy checkpoint tensors into the network, matrices with their low-rank change; every shape is checked."""

    @torch.no_grad()  # here, because the mode is per thread
    def put(target: Tensor, *names: str, changed_by: str = "") -> None:
        product = None
        if change and changed_by:
            product = low_rank(change, changed_by, (target.shape[0], target.shape[1]), folder / READER_FILE)
        source = joined(state, names, folder, product)
        target.copy_(tensor_of(checked(source, target.shape, " + ".join(names), folder)))

    put(network.embedding, "model.embed_tokens.weight")
    put(network.norm, "model.norm.weight")
    if network.head is not None:
        put(network.head, "lm_head.weight")

    def put_layer(number: int) -> None:
        layer, stem = network.layers[number], f"model.layers.{number}."
        assert isinstance(layer, Layer)
        put(layer.attn_norm, stem + "input_layernorm.weight")
        put(layer.ffn_norm, stem + "post_attention_layernorm.weight")
        for norm, name in zip(layer.head_norms, HEAD_NORMS, strict=False):
            put(norm, f"{stem}{name}.weight")
        for matrix, names in FUSED_MATRICES.items():
            linear = getattr(layer, matrix)
            put(linear.weight, *matrix_names(state, number, matrix), changed_by=f"layers.{number}.{matrix}")
            if linear.bias is not None:
                put(linear.bias, *(f"{stem}{name}.bias" for name in names))

    with ThreadPoolExecutor(LOADER_THREADS) as pool:
        list(pool.map(put_layer, range(len(network.layers))))


@torch.no_grad()
def fill_adapter(network: TorchDecoder, state: Mapping[str, StoredArray], folder: Path) -> None:
    """Copy the writer's tensors (named like the network's own parameters) into the network."""
    for name, parameter in adapter_parameters(network).items():
        parameter.copy_(tensor_of(adapter_tensor(state, name, parameter.shape, folder)))


def adapter_parameters(network: TorchDecoder) -> dict[str, Tensor]:
    """The parameters that `adapter.safetensors` holds, by name: factors, and the rows of mask and end."""
    adapted = network.named_parameters() if network.config.adapter_rank else ()
    return {name: each for name, each in adapted if name.endswith(("markers", ".down", ".up"))}


def tensor_of(array: StoredArray) -> Tensor:
    """The array as a tensor that shares its memory where it may be written; bfloat16 stays bfloat16."""
    array = array if array.flags.writeable else array.copy()
    if array.dtype == bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
