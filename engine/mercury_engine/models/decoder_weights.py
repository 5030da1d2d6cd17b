"""Weights for the decoder in torch: read from a model folder."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from mercury_kernels.cpu.blocks import BF16, F16, F32, GROUP, Q8_0, BlockMatrix
from torch import Tensor

from mercury_engine.errors import ModelCorrupt
from mercury_engine.models import weights
from mercury_engine.models.decoder import AdaptedLinear, Layer, TorchDecoder
from mercury_engine.models.network import ModelConfig
from mercury_engine.models.tensors import StoredTensors, Tensors
from mercury_engine.models.weights import FUSED_MATRICES, LOADER_THREADS, layer_vectors, matrix_names

PIECE = 1 << 21
"""Weights that are turned into eight bits at once; each takes some 20 bytes meanwhile."""

LEAST_SCALE = 2.0**-24
"""The smallest float16 above 0."""

_FLOATS = {F32: torch.float32, F16: torch.float16, BF16: torch.bfloat16}


def load(folder: Path, dtype: torch.dtype, device: torch.device, has_codes: bool = False) -> TorchDecoder:
    """The network of a model folder, with the writer's adapter if there is one.

    `has_codes`: the layers' weights are held in eight bits.
    """
    config = weights.read_config(folder)
    network = _unfilled(config, dtype, device, has_codes)
    fill_reader(network, folder)
    if weights.has_adapter(folder, config):
        _fill_adapter(network, StoredTensors(folder, weights.ADAPTER_FILES))
    for name, tensors in weights.read_adapters(folder, config).items():
        _put_named(network, name, tensors, dtype)
    return network


@torch.no_grad()
def _unfilled(config: ModelConfig, dtype: torch.dtype, device: torch.device, has_codes: bool) -> TorchDecoder:
    """An empty network on its device, to be filled a layer at a time: the host never holds all weights."""
    with torch.device("meta"):
        network = TorchDecoder(config).to(dtype)
        for part in network.modules() if has_codes else ():
            if isinstance(part, AdaptedLinear):
                part.hold_codes()
    return network.to_empty(device=device)


def _put_named(network: TorchDecoder, adapter: str, tensors: Tensors, dtype: torch.dtype) -> None:
    """Load an adapter that forwards ask for by name. Raises ModelCorrupt."""
    for number, layer in enumerate(network.layers):
        for matrix in FUSED_MATRICES:
            linear: AdaptedLinear = getattr(layer, matrix)
            outputs, inputs = linear.weight.shape
            factors = map(torch.from_numpy, tensors.product(f"layers.{number}.{matrix}", (outputs, inputs)))
            down, up = (each.to(network.device, dtype).contiguous() for each in factors)
            linear.named[adapter] = down, up


@torch.no_grad()
def fill_reader(network: TorchDecoder, folder: Path) -> None:
    """Copy the folder's weights into the network, with its low-rank change if there is one. Raises ModelCorrupt."""
    tensors, change = weights.read_model(folder), weights.reader_change(folder)
    for whole, name in ((network.embedding, "model.embed_tokens.weight"), (network.head, "lm_head.weight")):
        if whole is not None:
            target = whole[: network.config.vocab_size]
            target.copy_(_joined(tensors, [name], tensors.parts([name], (target.shape[0], target.shape[1]))))
    _put_floats(network.norm, tensors, "model.norm.weight")

    def put_layer(number: int) -> None:
        layer = network.layers[number]
        assert isinstance(layer, Layer)
        _put_layer(layer, number, network.config, tensors, change)

    with ThreadPoolExecutor(LOADER_THREADS) as pool:
        list(pool.map(put_layer, range(len(network.layers))))


@torch.no_grad()  # the mode is per thread
def _put_layer(layer: Layer, number: int, config: ModelConfig, tensors: Tensors, change: Tensors | None) -> None:
    norms = (None, None) if layer.head_norms is None else layer.head_norms
    vectors: dict[str, Tensor | None] = {"attention_norm": layer.attn_norm, "feed_norm": layer.ffn_norm}
    vectors |= {"query_norm": norms[0], "key_norm": norms[1], "bias": layer.qkv.bias}
    for vector, values in layer_vectors(tensors, config, number):
        target = vectors[vector]
        assert target is not None
        target.copy_(torch.from_numpy(values))
    for which in FUSED_MATRICES:
        linear: AdaptedLinear = getattr(layer, which)
        names, shape = matrix_names(tensors, number, which), (linear.weight.shape[0], linear.weight.shape[1])
        parts = tensors.parts(names, shape)
        if linear.scales is not None and change is None and all(part.type is Q8_0 for part in parts):
            _put_codes(linear.weight, linear.scales, torch.cat([_shared(part) for part in parts]))
            continue
        whole = _joined(tensors, names, parts)
        if change is not None:
            down, up = map(torch.from_numpy, change.product(f"layers.{number}.{which}", shape))
            whole = whole.float() + up @ down
        if linear.scales is None:
            linear.weight.copy_(whole)
        else:
            _put_codes(linear.weight, linear.scales, whole)


def _put_floats(target: Tensor, tensors: Tensors, name: str) -> None:
    target.copy_(torch.from_numpy(tensors.floats(name, *target.shape)))


def _put_codes(codes: Tensor, scales: Tensor, source: Tensor) -> None:
    """Fill a matrix in eight bits from floats [out,in] or from the bytes of Q8_0's blocks, a piece at a time."""
    step = max(1, PIECE // codes.shape[1])
    for start in range(0, len(codes), step):
        rows = slice(start, start + step)
        given = source[rows]
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
def _fill_adapter(network: TorchDecoder, tensors: Tensors) -> None:
    """Copy the writer's tensors into the network. Raises ModelCorrupt."""
    for name, target in adapter_tensors(network).items():
        _put_floats(target, tensors, name)
    if network.head is not None:
        network.head[network.config.vocab_size :].copy_(adapter_tensors(network)["markers"])


def adapter_tensors(network: TorchDecoder) -> dict[str, Tensor]:
    """The tensors that `adapter.safetensors` holds, by name: factors, and the rows of mask and end."""
    factors = {name: each for name, each in network.named_parameters() if name.endswith((".down", ".up"))}
    return factors | {"markers": network.embedding[network.config.vocab_size :]}


def _joined(tensors: Tensors, names: Sequence[str], parts: Sequence[BlockMatrix]) -> Tensor:
    """The parts of a matrix in any float type. Raises ModelCorrupt for values that are not finite."""
    whole = torch.cat([tensor_of(part) for part in parts])
    if not (whole.sum(dtype=torch.float32).isfinite() or whole.isfinite().all()):
        raise ModelCorrupt(f"{' + '.join(names)} in {tensors.path} holds values that are not finite; fetch it again")
    return whole


def tensor_of(matrix: BlockMatrix) -> Tensor:
    """The values [out,in], as stored if they are floats."""
    kind = _FLOATS.get(matrix.type)
    return torch.from_numpy(matrix.floats()) if kind is None else _shared(matrix).view(kind)


def _shared(matrix: BlockMatrix) -> Tensor:
    """The bytes of a matrix, not copied if they may be written."""
    return torch.from_numpy(matrix.rows if matrix.rows.flags.writeable else matrix.rows.copy())
