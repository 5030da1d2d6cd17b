"""Weights for the decoder in torch: read from a model folder."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from mercury_kernels.cpu.blocks import GROUP, Q8_0, BlockMatrix
from torch import Tensor

from mercury_engine.models import adapters, quantized_weights, weights
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

PIECE = 1 << 21
"""Weights that are turned into eight bits at once; each takes some 20 bytes meanwhile."""

LEAST_SCALE = 2.0**-24
"""The smallest float16 above 0."""


def load(folder: Path, dtype: torch.dtype, device: torch.device, has_codes: bool = False) -> TorchDecoder:
    """The network of a model folder, with the writer's adapter if there is one.

    `has_codes`: the layers' weights are held in eight bits.
    """
    config = weights.read_config(folder)
    network = _unfilled(config, dtype, device, has_codes)
    fill_reader(network, folder)
    if weights.has_adapter(folder, config):
        stored = StoredTensors(folder, weights.ADAPTER_FILES)
        fill_adapter(network, adapters.unpacked(stored, folder), folder)
    for adapter in adapters.read(folder, config):
        _put_named(network, adapter, dtype)
    return network


@torch.no_grad()
def _unfilled(config: ModelConfig, dtype: torch.dtype, device: torch.device, has_codes: bool) -> TorchDecoder:
    """An empty network on its device, to be filled a layer at a time: the host never holds all weights."""
    with torch.device("meta"):
        network = TorchDecoder(config).to(dtype)
        for part in network.modules() if has_codes else ():
            if isinstance(part, AdaptedLinear):
                part.hold_codes()
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
    def put(target: Tensor, *names: str) -> None:
        target.copy_(tensor_of(checked(joined(state, names, folder), target.shape, " + ".join(names), folder)))

    @torch.no_grad()
    def put_matrix(number: int, which: str) -> None:
        linear: AdaptedLinear = getattr(network.layers[number], which)
        names, shape = matrix_names(state, number, which), (linear.weight.shape[0], linear.weight.shape[1])
        product = low_rank(change, f"layers.{number}.{which}", shape, folder / READER_FILE) if change else None
        source = _stored_codes(state, names, shape, folder) if linear.scales is not None and product is None else None
        if source is None:
            source = checked(joined(state, names, folder, product), shape, " + ".join(names), folder)
        if linear.scales is None:
            linear.weight.copy_(tensor_of(source))
        else:
            _put_codes(linear.weight, linear.scales, source)

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
            put_matrix(number, matrix)
            if (bias := getattr(layer, matrix).bias) is not None:
                put(bias, *(f"{stem}{name}.bias" for name in names))

    with ThreadPoolExecutor(LOADER_THREADS) as pool:
        list(pool.map(put_layer, range(len(network.layers))))


def _stored_codes(state: weights.State, names: list[str], shape: tuple[int, int], folder: Path) -> StoredArray | None:
    """The bytes [out,...] of a matrix that the file has in Q8_0; None for others. Raises ModelCorrupt."""
    parts = [part for name in names if isinstance(part := state.get(name), BlockMatrix) and part.type is Q8_0]
    if len(parts) < len(names):
        return None
    rows = [part.rows for part in quantized_weights.fitting(parts, names, shape, folder)]
    return rows[0] if len(rows) == 1 else np.concatenate(rows)


def _put_codes(codes: Tensor, scales: Tensor, source: StoredArray) -> None:
    """Fill a matrix in eight bits from floats [out,in] or from the bytes of Q8_0's blocks, a piece at a time."""
    step = max(1, PIECE // codes.shape[1])
    for start in range(0, len(codes), step):
        rows = slice(start, start + step)
        given = tensor_of(source[rows])
        piece = codes.new_empty(given.shape, dtype=given.dtype).copy_(given)
        found, scale = _in_blocks(piece) if piece.dtype == torch.uint8 else quantised(piece)
        codes[rows].copy_(found)
        scales[:, rows].copy_(scale.T)


def _in_blocks(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Codes int8 [out,in] and scales float16 [out,in/GROUP] in bytes [out,...] of Q8_0's blocks."""
    blocks = rows.unflatten(1, (-1, Q8_0.size))
    return blocks[..., 2:].view(torch.int8).flatten(1), blocks[..., :2].view(torch.float16)[..., 0]


def quantised(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Codes int8 [out,in] and scales float16 [out,in/GROUP] of floats [out,in], by the arithmetic of Q8_0."""
    groups = weight.float().unflatten(1, (-1, GROUP))
    scales = (groups.abs().amax(-1) / 127).half()
    steps = groups / scales.float().clamp(min=LEAST_SCALE)[..., None]
    return steps.round().clamp(-127, 127).to(torch.int8).flatten(1), scales


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
