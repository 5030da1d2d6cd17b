"""Puts a model's weights into the C kernels' layers; floats are rounded to eight bits there."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from mercury_kernels.cpu.blocks import Floats
from mercury_kernels.cpu.layers import ALL_ROWS, WHOLE_MODEL, Layers, MatrixName

from mercury_engine.models.gguf.checkpoint import GgufTensors
from mercury_engine.models.network import ModelConfig
from mercury_engine.models.tensors import Tensors
from mercury_engine.models.weights import LOADER_THREADS, layer_vectors, matrix_names


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
            tensors.file.release()

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
    for which, shape in layers.shapes.items():
        _put_matrix(layers, number, which, tensors, matrix_names(tensors, number, which), shape)
    for vector, values in layer_vectors(tensors, config, number):
        layers.put_vector(number, vector, values)
        if vector == "bias" and layers.wide:
            _put_large(layers, config, number, values)


def _put_large(layers: Layers, config: ModelConfig, number: int, bias: Floats) -> None:
    """Name the large dimensions of each head's keys: the pairs with the largest biases."""
    asked, heads, half = config.num_attention_heads * config.head_dim, config.num_key_value_heads, config.head_dim // 2
    keys = bias[asked : asked + heads * 2 * half].reshape(heads, 2, half)
    largest = np.argsort(-np.linalg.norm(keys, axis=1), 1)[:, : layers.wide // 2]
    layers.put_large(number, np.concatenate((largest, largest + half), 1).astype(np.int32))


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
