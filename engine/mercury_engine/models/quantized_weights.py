"""Quantised weights for the C kernels: matrices as stored, float matrices in eight bits.

The matrices are those of `decoder.Layer`; `mercury_kernels.cpu.layers.QuantizedMatrix` defines the codes.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from mercury_kernels.cpu.blocks import GROUP, BlockMatrix
from mercury_kernels.cpu.layers import ALL_ROWS, WHOLE_MODEL, Layers, QuantizedMatrix

from mercury_engine.errors import ModelCorrupt
from mercury_engine.models import weights
from mercury_engine.models.gguf.checkpoint import GgufTensors
from mercury_engine.models.network import ModelConfig
from mercury_engine.models.weights import State, StoredArray

Change = Mapping[str, StoredArray]
"""Low-rank products by name."""


def put_reader(layers: Layers, config: ModelConfig, state: State, change: Change, folder: Path) -> None:
    """Put a whole reader into the layers, with the low-rank `change` from `reader.safetensors`. Raises ModelCorrupt."""

    def put(number: int) -> None:
        if number == WHOLE_MODEL:
            _put_head(layers, config, state, folder)
        else:
            _put_layer(layers, config, number, state, change, folder)
        if isinstance(state, GgufTensors):
            state.release()

    with ThreadPoolExecutor(weights.LOADER_THREADS) as pool:
        list(pool.map(put, (WHOLE_MODEL, *range(config.num_hidden_layers))))


def _put_head(layers: Layers, config: ModelConfig, state: State, folder: Path) -> None:
    layers.put_last_norm(_vector(state, "model.norm.weight", config.hidden_size, folder))
    names = ["model.embed_tokens.weight" if config.tie_word_embeddings else "lm_head.weight"]
    shape = (config.vocab_size, config.hidden_size)
    codes = stored(state, names, shape, folder) or [_made(state, names, shape, folder)]
    layers.put_matrix(WHOLE_MODEL, "head", codes, split=True)


def put_products(layers: Layers, config: ModelConfig, change: Change, path: Path, piece: int) -> None:
    """Put low-rank products for every matrix into the layers; `path` names their file in errors. Raises ModelCorrupt.

    `piece`: see `Layers.put_low_rank`.
    """
    for number in range(config.num_hidden_layers):
        for which, shape in layers.shapes.items():
            down, up = weights.low_rank(change, f"layers.{number}.{which}", shape, path)
            layers.put_low_rank(number, which, down, up, piece)


def eight_bit(weight: StoredArray) -> QuantizedMatrix:
    """Quantise floats [out,in] to eight bits."""
    groups = weight.astype(np.float32).reshape(len(weight), -1, GROUP)
    with np.errstate(over="ignore", invalid="ignore"):  # beyond float16: the caller looks at the result
        lows = groups.min(-1).astype(np.float16)
        half = np.finfo(np.float16)
        reach = (groups.max(-1) - lows) * np.float32(1 + half.eps) / 255 + np.float32(half.smallest_subnormal)
        scales = reach.astype(np.float16)  # rounded, it still reaches the largest value
        steps = (groups - lows[..., None].astype(np.float32)) / scales[..., None].astype(np.float32)
        codes = np.clip(np.rint(steps), 0, 255).astype(np.uint8)
    return QuantizedMatrix(codes.reshape(weight.shape), scales, lows)


def _put_layer(layers: Layers, config: ModelConfig, number: int, state: State, change: Change, folder: Path) -> None:
    stem = f"model.layers.{number}."
    for which, shape in layers.shapes.items():
        names = weights.matrix_names(state, number, which)
        product = None
        if change:
            product = weights.low_rank(change, f"layers.{number}.{which}", shape, folder / weights.READER_FILE)
        codes = stored(state, names, shape, folder)
        if codes is None:
            layers.put_matrix(number, which, [_made(state, names, shape, folder, product)])
        else:
            layers.put_matrix(number, which, codes)
            if product is not None:
                layers.put_low_rank(number, which, *product, ALL_ROWS)
    norms = ("input_layernorm", "post_attention_layernorm")
    attention, feed_forward = (_vector(state, f"{stem}{n}.weight", config.hidden_size, folder) for n in norms)
    layers.put_norms(number, attention, feed_forward)
    if config.qk_norm:
        queries, keys = (_vector(state, f"{stem}{n}.weight", config.head_dim, folder) for n in weights.HEAD_NORMS)
        layers.put_head_norms(number, queries, keys)
    if config.attention_bias:
        _put_biases(layers, config, number, state, folder)


def _put_biases(layers: Layers, config: ModelConfig, number: int, state: State, folder: Path) -> None:
    """Put the biases of queries, keys and values; the large dimensions of keys are those with the largest biases."""
    heads, width = config.num_key_value_heads, config.head_dim
    names = [f"model.layers.{number}.{name}.bias" for name in weights.FUSED_MATRICES["qkv"]]
    sizes = [config.num_attention_heads * width, heads * width, heads * width]
    biases = [_vector(state, name, size, folder).astype(np.float32) for name, size in zip(names, sizes, strict=True)]
    layers.put_bias(number, "qkv", np.concatenate(biases))
    if layers.wide:
        length_of_pair = np.linalg.norm(biases[1].reshape(heads, 2, width // 2), axis=1)
        largest = np.argsort(-length_of_pair, 1)[:, : layers.wide // 2]
        layers.put_large(number, np.concatenate((largest, largest + width // 2), 1).astype(np.int32))


def _vector(state: State, name: str, size: int, folder: Path) -> StoredArray:
    return weights.checked(weights.unpack(state, name, folder), [size], name, folder)


def stored(
    state: State, names: list[str], shape: tuple[int, int], folder: Path
) -> list[QuantizedMatrix] | list[BlockMatrix] | None:
    """The matrix as stored in the file; None if it is not packed there. Raises ModelCorrupt."""
    blocks = [matrix for name in names if name in state and isinstance(matrix := state[name], BlockMatrix)]
    if len(blocks) == len(names):
        return fitting(blocks, names, shape, folder)
    bits = next((bits for bits in (4, 8) if all(f"{name}.q{bits}" in state for name in names)), None)
    if bits is None:
        return None
    outputs, inputs = shape
    parts = [_packed(state, name, bits, folder) for name in names]
    for part, name in zip(parts, names, strict=True):
        groups = [len(part.codes), inputs // GROUP]
        weights.checked(part.codes, [len(part.codes), inputs * bits // 8], name, folder)
        if part.codes.dtype != np.uint8:
            raise ModelCorrupt(f"{name} in {folder} has codes of {part.codes.dtype}; fetch the model again")
        for ends in (part.scales, part.lows):
            weights.checked(ends, groups, name, folder)
    weights.checked(
        np.concatenate([part.scales for part in parts]), [outputs, inputs // GROUP], " + ".join(names), folder
    )
    return parts


def fitting(blocks: list[BlockMatrix], names: list[str], shape: tuple[int, int], folder: Path) -> list[BlockMatrix]:
    """The parts of a matrix of this shape. Raises ModelCorrupt."""
    found = sum(part.outputs for part in blocks), blocks[0].inputs
    if found != shape or any(part.inputs != shape[1] for part in blocks):
        raise ModelCorrupt(
            f"{' + '.join(names)} in {folder} has shape {list(found)}, its metadata ask for {list(shape)}; "
            "fetch it again"
        )
    return blocks


def _packed(state: State, name: str, bits: int, folder: Path) -> QuantizedMatrix:
    """The stored codes, with signed 8-bit codes turned into unsigned ones. Raises ModelCorrupt."""
    try:
        codes, scales = (weights.array(state, f"{name}.{part}") for part in (f"q{bits}", "scale"))
        scales = scales.astype(np.float16)
        if bits == 4:
            return QuantizedMatrix(codes, scales, weights.array(state, f"{name}.low").astype(np.float16))
    except KeyError as error:
        raise ModelCorrupt(f"{name} in {folder} is missing or misshapen ({error}); fetch the model again") from error
    return QuantizedMatrix(
        codes.view(np.uint8) ^ np.uint8(128) if codes.dtype == np.int8 else codes, scales, np.float16(-128) * scales
    )


def _made(
    state: State,
    names: list[str],
    shape: tuple[int, int],
    folder: Path,
    change: tuple[StoredArray, StoredArray] | None = None,
) -> QuantizedMatrix:
    """The matrix of floats, with its change, in eight bits. Raises ModelCorrupt, and ValueError beyond float16."""
    name = " + ".join(names)
    made = eight_bit(weights.checked(weights.joined(state, names, folder, change), shape, name, folder))
    if not np.isfinite(made.scales).all() or not np.isfinite(made.lows).all():
        raise ValueError(f"the kernels do not take values as large as those of {name}")
    return made
