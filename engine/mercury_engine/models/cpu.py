"""The network run by the C kernels of `mercury_kernels.cpu`, with weights quantised as on disk.

Same interface and numbers as `torch_network.TorchNetwork`, within the error of 8-bit activations, without torch. Reader
and writer share all matrices; each adds low-rank products of its own.

Dimensions as in `network.py`; one request at a time (B = 1).
"""

from collections.abc import Collection, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from mercury_kernels.cpu.blocks import BF16, F16, F32, BlockMatrix, Floats, rounded, widened
from mercury_kernels.cpu.layers import (
    ALL_ROWS,
    FIRST_ADAPTER,
    WHOLE_MODEL,
    WRITER_ROWS,
    Layers,
    MatrixName,
    Part,
    StoredArray,
)

from mercury_engine.models import weights
from mercury_engine.models.arrays import FloatArray, IdArray, MaskArray, log_softmax_in_place
from mercury_engine.models.gguf.checkpoint import GgufTensors
from mercury_engine.models.network import ForwardRequest, KeyValueBlock, KeyValueSegment, ModelConfig
from mercury_engine.models.row_answers import RowAnswers, RowQuestion
from mercury_engine.models.tensors import StoredTensors, Tensors

LARGE_PAIRS = 8
"""Pairs of dimensions of every head that biased keys keep in float32, see docs/decisions/cpu.md."""

KEPT_ROWS = 16
"""Rows whose logits have memory that stays: mapped for each pass, it would take a tenth of the head's time."""

Angles = tuple[FloatArray, FloatArray]
"""Cosines and sines [R,D]."""


class Embedding:
    """The vocabulary's rows, rounded to bfloat16, then those of mask and end, unpacked on demand."""

    def __init__(self, tensors: Tensors, config: ModelConfig) -> None:
        """Raises ModelCorrupt."""
        name, shape = "model.embed_tokens.weight", (config.vocab_size, config.hidden_size)
        [self._matrix] = tensors.parts([name], shape)
        if self._matrix.type in (F32, F16, BF16):
            self._matrix = BlockMatrix(BF16, rounded(tensors.floats(name, *shape)).view(np.uint8))
        self._size, self._factor = config.vocab_size, np.float32(config.embedding_multiplier)
        self.markers: FloatArray = np.zeros((2, config.hidden_size), np.float32)

    def rows(self, ids_R: IdArray) -> FloatArray:
        """Rows [R,C] of tokens, mask and end."""
        is_marker_R: MaskArray = ids_R >= self._size
        rows_RC = widened(rounded(self._matrix[np.where(is_marker_R, 0, ids_R)].floats()))
        rows_RC *= self._factor
        if is_marker_R.any():
            rows_RC[is_marker_R] = self.markers[ids_R[is_marker_R] - self._size]
        return rows_RC


class CpuNetwork:
    """Implements `Network`."""

    backend = "native"
    device = "cpu"

    def __init__(self, folder: Path, config: ModelConfig, layers: Layers) -> None:
        """Fill `layers` with the folder's weights. Raises ModelNotFound and ModelCorrupt."""
        self.config, self.threads, self._stack = config, layers.threads, layers
        tensors = weights.read_model(folder)
        _put_reader(layers, config, tensors, weights.reader_change(folder))
        self.embedding = Embedding(tensors, config)
        width, divisor = config.head_dim, np.array(config.rope_factors or 1.0)
        self._frequencies = (config.rope_theta ** (-np.arange(0, width, 2) / width) / divisor).astype(np.float32)
        self._room: FloatArray = np.empty(KEPT_ROWS * (config.vocab_size + 2), np.float32)
        self._adapters = self._put_adapters(folder)
        if config.adapter_rank:
            self._put_writer(folder)

    def _put_writer(self, folder: Path) -> None:
        """Load what the writer adds. Raises ModelNotFound and ModelCorrupt."""
        adapter = StoredTensors(folder, weights.ADAPTER_FILES)
        _put_products(self._stack, adapter, WRITER_ROWS)
        self.embedding.markers = widened(rounded(adapter.floats("markers", 2, self.config.hidden_size)))

    def _put_adapters(self, folder: Path) -> dict[str, int]:
        """Load the folder's adapters; their numbers by name. Raises ModelCorrupt."""
        found = weights.read_adapters(folder, self.config)
        for number, tensors in enumerate(found.values()):
            _put_products(self._stack, tensors, FIRST_ADAPTER + number)
        return {name: number for number, name in enumerate(found)}

    @property
    def adapters(self) -> Collection[str]:
        return self._adapters.keys()

    def rest(self) -> None:
        """Nothing to do: there is no device."""

    def read_together(self, forwards: Sequence[ForwardRequest]) -> list[tuple[FloatArray, KeyValueBlock]]:
        """See `Network.read_together`: one pass for all forwards with the same weights, with each a part of it."""
        by_weights: dict[tuple[bool, int | None], list[int]] = {}
        for number, forward in enumerate(forwards):
            chosen = forward.is_canvas, self._adapters.get(forward.adapter)
            by_weights.setdefault(chosen, []).append(number)
        found: dict[int, tuple[FloatArray, KeyValueBlock]] = {}
        for (_, adapter), numbers in by_weights.items():
            group = [forwards[number] for number in numbers]
            ends = np.cumsum([each.rows for each in group])[:-1]
            out, keys, values = self._stack.run(*self._rows(group), adapter)
            blocks = map(KeyValueBlock, np.split(keys, ends, 3), np.split(values, ends, 3))
            found |= zip(numbers, zip(np.split(out, ends), blocks, strict=True), strict=True)
        return [found[number] for number in range(len(forwards))]

    def read_in_parts(self, forward: ForwardRequest) -> Generator[None, None, tuple[FloatArray, KeyValueBlock]]:
        adapter, at_once = self._adapters.get(forward.adapter), self.config.layers_at_once(forward.rows)
        out, keys, values = yield from self._stack.run_in_parts(*self._rows([forward]), adapter, at_once)
        return out, KeyValueBlock(keys, values)

    def _rows(self, forwards: Sequence[ForwardRequest]) -> tuple[FloatArray, Angles, Angles | None, list[Part]]:
        """Embedded rows of forwards of one kind, their angles toward prefix and suffix, and their parts.

        Each run or canvas of a forward is a part, so that it is computed as if alone, to the bit.
        """
        parts = list[Part]()
        for each in forwards:
            past, after = _kept(each.past), _kept(each.after or ())
            parts += [Part(rows, past, after, _mask(rows, each.block)) for rows in each.lengths]
        near_R = np.concatenate([each.start + each.place_T for each in forwards])
        away_R = np.concatenate([each.place_T - np.repeat(each.lengths, each.lengths) for each in forwards])
        away = self.angles(away_R) if forwards[0].is_canvas else None
        return self.embedding.rows(np.concatenate([each.ids_T for each in forwards])), self.angles(near_R), away, parts

    def log_probabilities(self, hidden_RC: FloatArray) -> FloatArray:
        return log_softmax_in_place(self._stack.head(hidden_RC))

    def told_ahead(self, forward: ForwardRequest) -> None:
        return None

    def answers(
        self, hidden_WC: FloatArray, questions: Sequence[RowQuestion], is_canvas: bool = False
    ) -> list[RowAnswers]:
        """See `Network.answers`; only open rows pass the head."""
        opens = [np.ones(each.rows, np.bool_) if each.open_W is None else each.open_W for each in questions]
        logits_WV = self._logits(hidden_WC[np.concatenate(opens)], is_canvas)
        parts = np.split(logits_WV, np.cumsum([np.count_nonzero(each) for each in opens])[:-1])
        told = []
        for part, asks, open_W in zip(parts, questions, opens, strict=True):
            found = self._stack.answers(part, asks.banned_N, asks.list_W[open_W], asks.asked_A, asks.draws)
            told.append(RowAnswers(*found).spread(open_W))
        return told

    def _logits(self, hidden_WC: FloatArray, is_canvas: bool) -> FloatArray:
        """Logits [W,V] of the vocabulary and, for a canvas [W,V+2], of mask and end; valid until the next call."""
        columns = self.config.vocab_size + 2 * is_canvas
        size = len(hidden_WC) * columns
        room = self._room if size <= len(self._room) else np.empty(size, np.float32)
        logits = self._stack.head(hidden_WC, room[:size].reshape(-1, columns))
        if is_canvas:
            logits[:, -2] = -np.inf
            logits[:, -1] = (hidden_WC * self.embedding.markers[1]).sum(-1)  # not @, whose bits depend on other rows
        return logits

    def kept(self, block: KeyValueBlock) -> KeyValueBlock:
        """The block in eight bits, see `Layers.keep`."""
        return KeyValueBlock(*self._stack.keep(block.keys, block.values))

    def rotated(self, block: KeyValueBlock, start: int) -> KeyValueSegment:
        """See `Network.rotated`; in eight bits."""
        return self.side_by_side([block], start)

    def side_by_side(self, blocks: Sequence[KeyValueBlock], start: int) -> KeyValueSegment:
        """See `Network.side_by_side`; in eight bits, without copying the blocks first, see `Layers.place`."""
        angles = self.angles(np.arange(start, start + sum(block.tokens for block in blocks)))
        return KeyValueSegment(*self._stack.place([(block.keys, block.values) for block in blocks], angles))

    def angles(self, positions_R: IdArray) -> Angles:
        """Rotary angles of positions, correctly rounded. arXiv 2104.09864."""
        angle = (positions_R.astype(np.float32)[:, None] * self._frequencies).astype(np.float64)
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        return np.concatenate((cos, cos), 1), np.concatenate((sin, sin), 1)


def layers_for(config: ModelConfig, threads: int) -> Layers:
    """Empty layers of the model's shape. Raises what `Layers` raises."""
    return Layers(
        config.num_hidden_layers,
        config.hidden_size,
        config.intermediate_size,
        config.num_key_value_heads,
        config.num_attention_heads // config.num_key_value_heads,
        config.head_dim,
        config.rms_norm_eps,
        threads,
        wide=2 * min(LARGE_PAIRS, config.head_dim // 2) if config.attention_bias else 0,
        factors=(config.score_factor, config.residual_multiplier, 1 / config.logits_scaling),
    )


def _mask(rows: int, block: int | None) -> FloatArray | None:
    """Additive mask [R,R] that hides later blocks (see `ForwardRequest`); None where all rows see each other."""
    if block is None or rows <= block:
        return None
    block_R = np.arange(rows) // block
    return np.where(block_R[:, None] < block_R[None, :], np.float32(-np.inf), np.float32(0))


def _kept(sides: Sequence[KeyValueSegment]) -> list[tuple[StoredArray, StoredArray]]:
    return [(side.keys, side.values) for side in sides]


def _put_reader(layers: Layers, config: ModelConfig, tensors: Tensors, change: Tensors | None) -> None:
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

    with ThreadPoolExecutor(weights.LOADER_THREADS) as pool:
        list(pool.map(put, (WHOLE_MODEL, *range(config.num_hidden_layers))))
    if change is not None:
        _put_products(layers, change, ALL_ROWS)


def _put_products(layers: Layers, tensors: Tensors, piece: int) -> None:
    """Put low-rank products for every matrix into the layers. Raises ModelCorrupt.

    `piece`: see `Layers.put_low_rank`.
    """
    for number in range(layers.layers):
        for which, shape in layers.shapes.items():
            layers.put_low_rank(number, which, *tensors.product(f"layers.{number}.{which}", shape), piece)


def _put_layer(layers: Layers, config: ModelConfig, number: int, tensors: Tensors) -> None:
    for which, shape in layers.shapes.items():
        _put_matrix(layers, number, which, tensors, weights.matrix_names(tensors, number, which), shape)
    for vector, values in weights.layer_vectors(tensors, config, number):
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
