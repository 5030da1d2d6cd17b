"""The torch twin of `Layers`: the same methods, with weights and rows in float32, where only stored values are rounded.

It takes and returns NumPy arrays, as `Layers` does, and computes with torch. Dimensions as in `layers.py`.
"""

from collections.abc import Sequence

import numpy as np
import torch
from mercury_kernels.cpu.blocks import GROUP
from mercury_kernels.cpu.layers import (
    ALL_ROWS,
    BFLOAT16,
    FIRST_ADAPTER,
    WHOLE_MODEL,
    WRITER_ROWS,
    Floats,
    KeysValues,
    MatrixName,
    Part,
    QuantizedMatrix,
    StoredArray,
)
from mercury_kernels.reference import Segment, rms_norm, rotate, segmented_attention, swiglu
from torch import Tensor


def floats(part: QuantizedMatrix) -> Floats:
    """The matrix float32 [out,in] that the codes represent."""
    outputs, groups = part.scales.shape
    codes = part.codes.reshape(outputs, groups, -1)
    whole = codes if part.bits == 8 else np.concatenate((codes & 15, codes >> 4), -1)
    scales, lows = (ends.astype(np.float32)[..., None] for ends in (part.scales, part.lows))
    return (whole * scales + lows).reshape(outputs, groups * GROUP)


def _tensor(array: StoredArray) -> Tensor:
    return torch.from_numpy(array.astype(np.float32))


class ReferenceLayers:
    """See `mercury_kernels.cpu.layers.Layers`."""

    def __init__(self, layers: int, heads: int, groups: int, head_width: int, eps: float) -> None:
        self.layers, self.heads, self.groups, self.head_width, self.eps = layers, heads, groups, head_width, eps
        self._matrices: dict[tuple[int, str], Tensor] = {}
        self._biases: dict[tuple[int, str], Tensor] = {}
        self._products: dict[tuple[int, str, int], tuple[Tensor, Tensor]] = {}
        self._norms: dict[int, tuple[Tensor, ...]] = {}
        self._head_norms: dict[int, tuple[Tensor, Tensor]] = {}
        self._scores, self._residual, self._logits = head_width**-0.5, 1.0, 1.0

    def put_matrix(self, layer: int, which: MatrixName, parts: Sequence[QuantizedMatrix]) -> None:
        self._matrices[layer, which] = torch.cat([_tensor(floats(part)) for part in parts])

    def put_bias(self, layer: int, which: MatrixName, bias: Floats) -> None:
        self._biases[layer, which] = _tensor(bias)

    def put_norms(self, layer: int, attention: Floats, feed_forward: Floats) -> None:
        self._norms[layer] = _tensor(attention), _tensor(feed_forward)

    def put_head_norms(self, layer: int, queries: Floats, keys: Floats) -> None:
        self._head_norms[layer] = _tensor(queries), _tensor(keys)

    def put_factors(self, scores: float, residual: float, logits: float) -> None:
        self._scores, self._residual, self._logits = scores, residual, logits

    def put_last_norm(self, norm: Floats) -> None:
        self._norms[WHOLE_MODEL] = (_tensor(norm),)

    def put_low_rank(self, layer: int, which: MatrixName, down: StoredArray, up: StoredArray, piece: int) -> None:
        self._products[layer, which, piece] = _tensor(down.astype(BFLOAT16)), _tensor(up.astype(BFLOAT16))

    def run(
        self,
        x_RC: Floats,
        near: tuple[Floats, Floats],
        away: tuple[Floats, Floats] | None,
        parts: Sequence[Part],
        adapter: int | None = None,
    ) -> tuple[Floats, StoredArray, StoredArray]:
        """See `Layers.run`."""
        x, keys, values = _tensor(x_RC), [], []
        pieces = [ALL_ROWS] + [WRITER_ROWS] * (away is not None)
        pieces += [] if adapter is None else [FIRST_ADAPTER + adapter]
        frames_of = [(_tensor(frame[0]), _tensor(frame[1])) for frame in (near, away) if frame is not None]
        sizes = [self.heads * self.groups, self.heads, self.heads]
        for layer in range(self.layers):
            norm, feed_norm = self._norms[layer]
            by_head = self._times(layer, "qkv", rms_norm(x, norm, self.eps), pieces)
            q, k, v = by_head.view(1, len(x), -1, self.head_width).transpose(1, 2).split(sizes, 1)
            if layer in self._head_norms:
                q, k = (rms_norm(x, norm, self.eps) for x, norm in zip((q, k), self._head_norms[layer], strict=True))
            q = q * (self._scores * self.head_width**0.5)
            frames = [rotate(q, *frame) for frame in frames_of]
            attended = self._attended(layer, frames, rotate(k, *frames_of[0]), v, parts)
            added = self._times(layer, "out", attended.transpose(1, 2).reshape(len(x), -1), pieces)
            x = x + self._residual * added
            gated = swiglu(self._times(layer, "gate_up", rms_norm(x, feed_norm, self.eps), pieces))
            x = x + self._residual * self._times(layer, "down", gated, pieces)
            keys.append((k - self._key_bias(layer)).numpy().astype(BFLOAT16))
            values.append(v.numpy().astype(BFLOAT16))
        return rms_norm(x, self._norms[WHOLE_MODEL][0], self.eps).numpy(), np.stack(keys), np.stack(values)

    def _attended(self, layer: int, frames: Sequence[Tensor], k: Tensor, v: Tensor, parts: Sequence[Part]) -> Tensor:
        """[1,H*G,R,D]: attention of each part's rows to its own keys."""
        found, rows = [], slice(0, 0)
        for part in parts:
            rows = slice(rows.stop, rows.stop + part.rows)
            bias = None if part.mask_RR is None else _tensor(part.mask_RR).repeat(self.groups, 1)[None, None]
            q = [frame[:, :, rows].reshape(1, self.heads, -1, self.head_width) for frame in frames]
            own: Segment = (q[0], k[:, :, rows], v[:, :, rows], bias)
            both = zip(q, (part.before, part.after), strict=False)
            seen = [(frame, _tensor(k[layer]), _tensor(v[layer]), None) for frame, sides in both for k, v in sides]
            found.append(segmented_attention([*seen, own]).view(1, -1, part.rows, self.head_width))
        return torch.cat(found, 2)

    def keep(self, keys: StoredArray, values: StoredArray) -> KeysValues:
        """See `Layers.keep`; float32 [L,1,H,T,D] here."""
        return self._with_bias(keys), values.astype(np.float32)

    def place(self, blocks: Sequence[KeysValues], angles: tuple[Floats, Floats]) -> KeysValues:
        """See `Layers.place`; a side is rotated keys and values float32 [L,1,H,T,D] here."""
        keys, values = (np.concatenate(of, 3) for of in zip(*blocks, strict=True))
        return rotate(_tensor(self._with_bias(keys)), *map(_tensor, angles)).numpy(), values.astype(np.float32)

    def _with_bias(self, keys: StoredArray) -> StoredArray:
        """Keys from `run` with the bias that it leaves out; keys from `keep` have it."""
        if keys.dtype != BFLOAT16:
            return keys
        return np.stack([each + self._key_bias(layer).numpy() for layer, each in enumerate(keys.astype(np.float32))])

    def _key_bias(self, layer: int) -> Tensor:
        """[H,1,D]: the bias that keys from `run` lack."""
        if (layer, "qkv") not in self._biases or layer in self._head_norms:
            return torch.zeros(self.heads, 1, self.head_width)
        sizes = [self.heads * self.groups, self.heads, self.heads]
        return self._biases[layer, "qkv"].view(-1, 1, self.head_width).split(sizes)[1]

    def head(self, x_RC: Floats) -> Floats:
        """See `Layers.head`."""
        return (self._logits * (_tensor(x_RC) @ self._matrices[WHOLE_MODEL, "head"].T)).numpy()

    def _times(self, layer: int, which: MatrixName, x: Tensor, pieces: Sequence[int]) -> Tensor:
        y = x @ self._matrices[layer, which].T + self._biases.get((layer, which), 0)
        for piece in pieces:
            if (layer, which, piece) in self._products:
                down, up = self._products[layer, which, piece]
                y = y + (x @ down.T) @ up.T
        return y
