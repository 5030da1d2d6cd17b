"""The torch twin of `Layers`: the same methods, with weights and rows in float32, where only stored values are rounded.

It takes and returns NumPy arrays, as `Layers` does, and computes with torch. Dimensions as in `layers.py`.
"""

from collections.abc import Sequence

import numpy as np
import torch
from mercury_kernels.cpu.blocks import BlockMatrix, Floats, rounded, widened
from mercury_kernels.cpu.layers import (
    ALL_ROWS,
    FIRST_ADAPTER,
    WHOLE_MODEL,
    WRITER_ROWS,
    KeysValues,
    MatrixName,
    Part,
    StoredArray,
    VectorName,
)
from mercury_kernels.reference import rms_norm, swiglu
from torch import Tensor

Segment = tuple[Tensor, Tensor, Tensor, Tensor | None]
"""Queries [1,H,GS,D] rotated for this segment, keys [1,H,T,D], values [1,H,T,D], bias [1,1,GS,T] or None."""


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [...,T,D] with the halves of the last dimension rotated by the angles [T,D]."""
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


def segmented_attention(segments: Sequence[Segment]) -> Tensor:
    """Attention [1,H,GS,D] over the keys of all segments together; a bias of -inf hides a key."""
    scale = segments[0][0].shape[-1] ** -0.5
    scores = [q @ k.transpose(-1, -2) * scale + (0 if bias is None else bias) for q, k, _, bias in segments]
    return torch.cat(scores, -1).softmax(-1) @ torch.cat([v for _, _, v, _ in segments], -2)


def _tensor(array: StoredArray) -> Tensor:
    return torch.from_numpy(widened(array) if array.dtype == np.uint16 else array.astype(np.float32))


def bits(values: Floats) -> StoredArray:
    """bfloat16, as passes return it."""
    return rounded(np.ascontiguousarray(values, np.float32))


class ReferenceLayers:
    """See `mercury_kernels.cpu.layers.Layers`."""

    def __init__(
        self,
        layers: int,
        heads: int,
        groups: int,
        head_width: int,
        eps: float,
        factors: tuple[float, float, float] | None = None,
    ) -> None:
        self.layers, self.heads, self.groups, self.head_width, self.eps = layers, heads, groups, head_width, eps
        self._matrices: dict[tuple[int, str], Tensor] = {}
        self._vectors: dict[tuple[int, str], Tensor] = {}
        self._products: dict[tuple[int, str, int], tuple[Tensor, Tensor]] = {}
        self._scores, self._residual, self._logits = factors or (head_width**-0.5, 1.0, 1.0)

    def put_matrix(self, layer: int, which: MatrixName, parts: Sequence[BlockMatrix]) -> None:
        self._matrices[layer, which] = torch.cat([_tensor(part.floats()) for part in parts])

    def put_vector(self, layer: int, which: VectorName, values: Floats) -> None:
        self._vectors[layer, which] = _tensor(values)

    def put_low_rank(self, layer: int, which: MatrixName, down: Floats, up: Floats, piece: int) -> None:
        self._products[layer, which, piece] = _tensor(bits(down)), _tensor(bits(up))

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
            norms = {name: self._vectors.get((layer, name)) for name in ("query_norm", "key_norm")}
            normed = rms_norm(x, self._vectors[layer, "attention_norm"], self.eps)
            by_head = self._times(layer, "qkv", normed, pieces)
            q, k, v = by_head.view(1, len(x), -1, self.head_width).transpose(1, 2).split(sizes, 1)
            if norms["query_norm"] is not None and norms["key_norm"] is not None:
                q, k = rms_norm(q, norms["query_norm"], self.eps), rms_norm(k, norms["key_norm"], self.eps)
            q = q * (self._scores * self.head_width**0.5)
            frames = [rotate(q, *frame) for frame in frames_of]
            attended = self._attended(layer, frames, rotate(k, *frames_of[0]), v, parts)
            added = self._times(layer, "out", attended.transpose(1, 2).reshape(len(x), -1), pieces)
            x = x + self._residual * added
            gated = swiglu(
                self._times(layer, "gate_up", rms_norm(x, self._vectors[layer, "feed_norm"], self.eps), pieces)
            )
            x = x + self._residual * self._times(layer, "down", gated, pieces)
            keys.append(bits((k - self._key_bias(layer)).numpy()))
            values.append(bits(v.numpy()))
        last = rms_norm(x, self._vectors[WHOLE_MODEL, "last_norm"], self.eps)
        return last.numpy(), np.stack(keys), np.stack(values)

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
        return self._with_bias(keys), _tensor(values).numpy()

    def place(self, blocks: Sequence[KeysValues], angles: tuple[Floats, Floats]) -> KeysValues:
        """See `Layers.place`; a side is rotated keys and values float32 [L,1,H,T,D] here."""
        keys, values = (np.concatenate(of, 3) for of in zip(*blocks, strict=True))
        return rotate(_tensor(self._with_bias(keys)), *map(_tensor, angles)).numpy(), _tensor(values).numpy()

    def _with_bias(self, keys: StoredArray) -> StoredArray:
        """Keys from `run` with the bias that it leaves out; keys from `keep` have it."""
        if keys.dtype != np.uint16:
            return keys
        return np.stack([each + self._key_bias(layer).numpy() for layer, each in enumerate(widened(keys))])

    def _key_bias(self, layer: int) -> Tensor:
        """[H,1,D]: the bias that keys from `run` lack."""
        if (layer, "bias") not in self._vectors or (layer, "key_norm") in self._vectors:
            return torch.zeros(self.heads, 1, self.head_width)
        sizes = [self.heads * self.groups, self.heads, self.heads]
        return self._vectors[layer, "bias"].view(-1, 1, self.head_width).split(sizes)[1]

    def head(self, x_RC: Floats) -> Floats:
        """See `Layers.head`."""
        return (self._logits * (_tensor(x_RC) @ self._matrices[WHOLE_MODEL, "head"].T)).numpy()

    def _times(self, layer: int, which: MatrixName, x: Tensor, pieces: Sequence[int]) -> Tensor:
        y = x @ self._matrices[layer, which].T + (self._vectors.get((layer, "bias"), 0) if which == "qkv" else 0)
        for piece in pieces:
            if (layer, which, piece) in self._products:
                down, up = self._products[layer, which, piece]
                y = y + (x @ down.T) @ up.T
        return y
