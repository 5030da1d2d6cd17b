"""The block drafter on the C kernels: one layer that denoises the slots behind a known token, all in one pass.

It attends to the cached keys and values of the reader's last layer, so it prefills nothing. The row of the known token
drafts slot 0, masked rows behind it draft the others. Every row begins as a linear map of what the reader has computed
at the place before the known token (its last hidden state, and the values of three layers) and of the known token's
embedding. A Markov head adds what the token before a slot says about it (DSpark, arXiv 2607.05147), so slots are drawn
in sequence without a further pass.

Dimensions: S slots, C width, F features, K draft vocabulary, H key heads, D head width, L layers, N rank.
"""

from collections.abc import Sequence

import numpy as np
from mercury_kernels.cpu.blocks import GROUP
from mercury_kernels.cpu.layers import MATRICES, WHOLE_MODEL, Layers, Part, QuantizedMatrix

from mercury_engine.models import drafter_file, quantized_weights, weights
from mercury_engine.models.arrays import FloatArray
from mercury_engine.models.cpu import CpuNetwork, additive, layers_for
from mercury_engine.models.drafter_file import DrafterTensors
from mercury_engine.models.network import KeyValueSegment, ReaderState
from mercury_engine.models.weights import StoredArray

SEEN = 256
"""Tokens of context that the layer attends to."""


class CpuDrafter:
    """Implements `BlockDrafter` for one reader. Not thread-safe."""

    def __init__(self, tensors: DrafterTensors, network: CpuNetwork) -> None:
        """Raises ModelCorrupt, and what `Layers` raises."""
        self._network, plain, matrices = network, tensors.plain, tensors.matrices
        self._plain, self._before, self.slots = plain, matrices["before"], len(plain["places"])
        self.vocabulary = tensors.vocabulary
        self._featured = drafter_file.featured_layers(network.config)
        self._layer = layers_for(network.config, network.threads, layers=1)
        for name in MATRICES:
            self._layer.put_matrix(0, name, [matrices[name]])
        self._layer.put_norms(0, plain["attention_norm"], plain["feed_forward_norm"])
        self._layer.put_last_norm(plain["norm"])
        folder = tensors.path.parent
        head = quantized_weights.head_rows(network.config, weights.read_model(folder), folder, self.vocabulary)
        self._layer.put_matrix(WHOLE_MODEL, "head", [head], split=True)
        self._fuse, self._after = _matrix(matrices["fuse"]), _matrix(matrices["after"])
        self._hidden_SS = additive(np.triu(np.ones((self.slots, self.slots), np.bool_), 1))

    def denoise(self, state: ReaderState, known: int) -> "CpuBlock":
        """See `BlockDrafter.denoise`."""
        values = state.values_LHD[self._featured].astype(np.float32).ravel()
        embedded = self._network.embedding.rows(np.array([known]))[0]
        features_F = np.concatenate((state.hidden_C, values, embedded)) * self._plain["scale"]
        first_C, masked_C = self._fuse.head(features_F[None])[0].reshape(2, -1)
        x_SC = np.stack([first_C] + [masked_C] * (self.slots - 1)) + self._plain["places"]
        angles = self._network.angles(state.position + 1 + np.arange(self.slots))
        part = Part(self.slots, _last_layer(state.past), hidden_RR=self._hidden_SS)
        hidden_SC, _, _ = self._layer.run(x_SC, angles, None, [part])
        return CpuBlock(self, self._layer.head(hidden_SC))

    def markov(self, slot: int, before: int) -> FloatArray:
        """What the token `before` says about a slot: logits [K] to add."""
        row_N = _row(self._before, before)
        added: FloatArray = self._after.head(row_N[None])[0] * self._plain["gain"][slot]
        return added


class CpuBlock:
    """Implements `DenoisedBlock`."""

    def __init__(self, drafter: CpuDrafter, logits_SK: FloatArray) -> None:
        self._drafter, self._logits_SK = drafter, logits_SK

    def best(self, slot: int, before: int, other: int | None) -> tuple[int, float, float]:
        """See `DenoisedBlock.best`."""
        logits_K = self._logits_SK[slot] + self._drafter.markov(slot, before)
        top = int(logits_K.argmax())
        total = float(np.log(np.exp(logits_K - logits_K[top]).sum()))
        vocabulary = self._drafter.vocabulary
        at = len(vocabulary) if other is None else int(np.searchsorted(vocabulary, other))
        known = at < len(vocabulary) and int(vocabulary[at]) == other
        chance = float(logits_K[at] - logits_K[top]) - total if known else -np.inf
        return int(vocabulary[top]), -total, chance


def _last_layer(past: Sequence[KeyValueSegment]) -> list[tuple[StoredArray, StoredArray]]:
    """The last layer's keys and values of the last `SEEN` tokens."""
    found, missing = list[tuple[StoredArray, StoredArray]](), SEEN
    for side in reversed(past):
        if missing <= 0:
            break
        first = max(0, side.keys.shape[3] - missing)
        found.append((side.keys[-1:, :, :, first:], side.values[-1:, :, :, first:]))
        missing -= side.keys.shape[3] - first
    return found[::-1]


def _matrix(codes: QuantizedMatrix) -> Layers:
    """One matrix alone, to be multiplied by `Layers.head`."""
    made = Layers(1, codes.inputs, codes.inputs, heads=1, groups=1, head_width=64, eps=1e-5, threads=1)
    made.put_matrix(WHOLE_MODEL, "head", [codes])
    return made


def _row(matrix: QuantizedMatrix, number: int) -> FloatArray:
    """A row [in] of an 8-bit matrix."""
    groups = matrix.codes[number].reshape(-1, GROUP).astype(np.float32)
    scale, low = (each[number].astype(np.float32)[:, None] for each in (matrix.scales, matrix.lows))
    whole: FloatArray = (groups * scale + low).ravel()
    return whole
