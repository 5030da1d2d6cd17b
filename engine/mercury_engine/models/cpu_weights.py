"""Puts a model's weights into the C kernels' layers; floats are rounded to eight bits there."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from mercury_kernels.cpu.layers import ALL_ROWS, WHOLE_MODEL, Layers, MatrixName

from mercury_engine.models.gguf.checkpoint import GgufTensors
from mercury_engine.models.network import ModelConfig
from mercury_engine.models.tensors import Tensors
from mercury_engine.models.weights import FUSED_MATRICES, HEAD_NORMS, LOADER_THREADS, matrix_names


def put_reader(layers: Layers, config: ModelConfig, tensors: Tensors, change: Tensors | None) -> None:
    """Put a whole reader into the layers, with its low-rank change. Raises ModelCorrupt; ValueError beyond float16."""

    def put(number: int) -> None:
        if number == WHOLE_MODEL:
            layers.put_vector(number, "last_norm", tensors.floats("model.norm.weight", config.hidden_size))
            name = "model.embed_tokens.weight" if config.tie_word_embeddings else "lm_head.weight"
            _put_matrix(layers, number, "head", tensors, [name], (config.vocab_size, config.hidden_size))
        else:
            _put_layer(layers, config, number, tensors)
        if isinstance(tensors, GgufTensors):
            tensors.release()

    with ThreadPoolExecutor(LOADER_THREADS) as pool:
        list(pool.map(put, (WHOLE_MODEL, *range(config.num_hidden_layers))))
    if change is not None:
        put_products(layers, change, ALL_ROWS)


def put_products(layers: Layers, tensors: Tensors, piece: int) -> None:
    """Put low-rank products for every matrix into the layers. Raises ModelCorrupt.

    `piece`: see `Layers.put_low_rank`.
    """
    for number in range(layers.layers):
        for which, shape in layers.shapes.items():
            layers.put_low_rank(number, which, *tensors.product(f"layers.{number}.{which}", shape), piece)


def _put_layer(layers: Layers, config: ModelConfig, number: int, tensors: Tensors) -> None:
    stem = f"model.layers.{number}."
    for which, shape in layers.shapes.items():
        _put_matrix(layers, number, which, tensors, matrix_names(tensors, number, which), shape)
    layers.put_vector(number, "attention_norm", tensors.floats(f"{stem}input_layernorm.weight", config.hidden_size))
    layers.put_vector(number, "feed_norm", tensors.floats(f"{stem}post_attention_layernorm.weight", config.hidden_size))
    if config.qk_norm:
        queries, keys = (tensors.floats(f"{stem}{name}.weight", config.head_dim) for name in HEAD_NORMS)
        layers.put_vector(number, "query_norm", queries)
        layers.put_vector(number, "key_norm", keys)
    if config.attention_bias:
        _put_biases(layers, config, number, tensors)


def _put_biases(layers: Layers, config: ModelConfig, number: int, tensors: Tensors) -> None:
    """Put the biases of queries, keys and values; the large dimensions of keys are those with the largest biases."""
    heads, width = config.num_key_value_heads, config.head_dim
    names = [f"model.layers.{number}.{name}.bias" for name in FUSED_MATRICES["qkv"]]
    sizes = [config.num_attention_heads * width, heads * width, heads * width]
    biases = [tensors.floats(name, size) for name, size in zip(names, sizes, strict=True)]
    layers.put_vector(number, "bias", np.concatenate(biases))
    if layers.wide:
        length_of_pair = np.linalg.norm(biases[1].reshape(heads, 2, width // 2), axis=1)
        largest = np.argsort(-length_of_pair, 1)[:, : layers.wide // 2]
        layers.put_large(number, np.concatenate((largest, largest + width // 2), 1).astype(np.int32))


def _put_matrix(
    layers: Layers, number: int, which: MatrixName, tensors: Tensors, names: Sequence[str], shape: tuple[int, int]
) -> None:
    """Put a matrix. Raises ModelCorrupt for values that are not finite, ValueError for those beyond float16."""
    parts = tensors.parts(names, shape)
    try:
        layers.put_matrix(number, which, parts, split=which == "head" and isinstance(tensors, GgufTensors))
    except ValueError:
        for name, part in zip(names, parts, strict=True):
            tensors.finite(name, part.floats())
        raise
