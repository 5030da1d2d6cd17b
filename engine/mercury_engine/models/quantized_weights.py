"""Quantised weights for the C kernels: 4-bit and 8-bit matrices as stored, float matrices in eight bits.

The matrices are those of `torch_network.Layer`; `mercury_kernels.cpu.layers.QuantizedMatrix` defines the codes.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from mercury_kernels.cpu.layers import GROUP, WHOLE_MODEL, Layers, QuantizedMatrix
from torch import Tensor

from mercury_engine.errors import ModelCorrupt
from mercury_engine.models import weights
from mercury_engine.models.network import ModelConfig

State = dict[str, Tensor]


def put_reader(layers: Layers, config: ModelConfig, state: State, change: State, folder: Path) -> None:
    """Put a whole reader into the layers, with the low-rank `change` from `reader.safetensors`. Raises ModelCorrupt."""

    def put(number: int) -> None:
        _put_layer(layers, config, number, state, change, folder)

    with ThreadPoolExecutor(weights.LOADER_THREADS) as pool:
        list(pool.map(put, range(config.num_hidden_layers)))
    layers.put_last_norm(_vector(state, "model.norm.weight", config.hidden_size, folder))
    head = "model.embed_tokens.weight" if config.tie_word_embeddings else "lm_head.weight"
    shape = (config.vocab_size, config.hidden_size)
    layers.put_matrix(
        WHOLE_MODEL, "head", _stored(state, [head], shape, folder) or [_made(state, [head], shape, folder)]
    )


def put_writer(layers: Layers, config: ModelConfig, adapter: State, path: Path) -> None:
    """Put the writer's low-rank additions to every matrix into the layers; `path` names their file in errors.

    Raises ModelCorrupt.
    """
    for number in range(config.num_hidden_layers):
        for which, shape in layers.shapes.items():
            down, up = weights.low_rank(adapter, f"layers.{number}.{which}", shape, path)
            layers.put_low_rank(number, which, down, up, writes=True)


def eight_bit(weight: Tensor) -> QuantizedMatrix:
    """Quantise floats [out,in] to eight bits."""
    groups = weight.float().unflatten(1, (-1, GROUP))
    lows = groups.amin(-1).half()
    half = torch.finfo(torch.half)
    reach = (groups.amax(-1) - lows.float()) * (1 + half.eps) / 255 + half.smallest_normal * half.eps
    scales = reach.half()  # rounded, it still reaches the largest value
    codes = ((groups - lows.float()[..., None]) / scales.float()[..., None]).round_().clamp_(0, 255)
    return QuantizedMatrix(codes.to(torch.uint8).flatten(1), scales, lows)


@torch.no_grad()  # here, because the mode is per thread
def _put_layer(layers: Layers, config: ModelConfig, number: int, state: State, change: State, folder: Path) -> None:
    stem = f"model.layers.{number}."
    for which, shape in layers.shapes.items():
        names = [f"{stem}{name}.weight" for name in weights.FUSED_MATRICES[which]]
        product = None
        if change:
            product = weights.low_rank(change, f"layers.{number}.{which}", shape, folder / weights.READER_FILE)
        codes = _stored(state, names, shape, folder)
        if codes is None:
            layers.put_matrix(number, which, [_made(state, names, shape, folder, product)])
        else:
            layers.put_matrix(number, which, codes)
            if product is not None:
                layers.put_low_rank(number, which, *product, writes=False)
    norms = ("input_layernorm", "post_attention_layernorm")
    attention, feed_forward = (_vector(state, f"{stem}{n}.weight", config.hidden_size, folder) for n in norms)
    layers.put_norms(number, attention, feed_forward)


def _vector(state: State, name: str, size: int, folder: Path) -> Tensor:
    return weights.checked(weights.unpack(state, name, folder), [size], name, folder)


def _stored(state: State, names: list[str], shape: tuple[int, int], folder: Path) -> list[QuantizedMatrix] | None:
    """The matrix as stored in the file; None if it is not packed there. Raises ModelCorrupt."""
    bits = next((bits for bits in (4, 8) if all(f"{name}.q{bits}" in state for name in names)), None)
    if bits is None:
        return None
    outputs, inputs = shape
    parts = [_packed(state, name, bits, folder) for name in names]
    for part, name in zip(parts, names, strict=True):
        groups = [len(part.codes), inputs // GROUP]
        weights.checked(part.codes, [len(part.codes), inputs * bits // 8], name, folder)
        if part.codes.dtype != torch.uint8:
            raise ModelCorrupt(f"{name} in {folder} has codes of {part.codes.dtype}; fetch the model again")
        for ends in (part.scales, part.lows):
            weights.checked(ends, groups, name, folder)
    weights.checked(torch.cat([part.scales for part in parts]), [outputs, inputs // GROUP], " + ".join(names), folder)
    return parts


def _packed(state: State, name: str, bits: int, folder: Path) -> QuantizedMatrix:
    """The stored codes, with signed 8-bit codes turned into unsigned ones. Raises ModelCorrupt."""
    try:
        codes, scales = state[f"{name}.q{bits}"], state[f"{name}.scale"].half()
        if bits == 4:
            return QuantizedMatrix(codes, scales, state[f"{name}.low"].half())
    except KeyError as error:
        raise ModelCorrupt(f"{name} in {folder} is missing or misshapen ({error}); fetch the model again") from error
    return QuantizedMatrix(codes.view(torch.uint8) ^ 128 if codes.dtype == torch.int8 else codes, scales, -128 * scales)


def _made(
    state: State, names: list[str], shape: tuple[int, int], folder: Path, change: tuple[Tensor, Tensor] | None = None
) -> QuantizedMatrix:
    """The matrix of floats, with its change, in eight bits. Raises ModelCorrupt, and ValueError beyond float16."""
    name = " + ".join(names)
    made = eight_bit(weights.checked(weights.joined(state, names, folder, change), shape, name, folder))
    if not made.scales.isfinite().all() or not made.lows.isfinite().all():
        raise ValueError(f"the kernels do not take values as large as those of {name}")
    return made
