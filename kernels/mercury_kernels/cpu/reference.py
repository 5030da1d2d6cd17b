"""The torch twin of `Layers`: the same methods, with weights and rows in float32, where only stored values are rounded.

Dimensions as in `layers.py`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from mercury_kernels.cpu.layers import GROUP, WHOLE_MODEL, KeysValues, MatrixName, Part, QuantizedMatrix
from mercury_kernels.reference import Segment, rms_norm, rotate, segmented_attention, swiglu


def floats(part: QuantizedMatrix) -> Tensor:
    """The matrix float32 [out,in] that the codes represent."""
    outputs, groups = part.scales.shape
    codes = part.codes.view(outputs, groups, -1)
    whole = codes if part.bits == 8 else torch.cat((codes & 15, codes >> 4), -1)
    return (whole.float() * part.scales.float()[..., None] + part.lows.float()[..., None]).view(outputs, groups * GROUP)


class ReferenceLayers:
    """See `mercury_kernels.cpu.layers.Layers`."""

    def __init__(self, layers: int, heads: int, groups: int, head_width: int, eps: float) -> None:
        self.layers, self.heads, self.groups, self.head_width, self.eps = layers, heads, groups, head_width, eps
        self._matrices: dict[tuple[int, str], Tensor] = {}
        self._biases: dict[tuple[int, str], Tensor] = {}
        self._products: dict[tuple[int, str, bool], tuple[Tensor, Tensor]] = {}
        self._norms: dict[int, tuple[Tensor, ...]] = {}

    def put_matrix(self, layer: int, which: MatrixName, parts: Sequence[QuantizedMatrix]) -> None:
        self._matrices[layer, which] = torch.cat([floats(part) for part in parts])

    def put_bias(self, layer: int, which: MatrixName, bias: Tensor) -> None:
        self._biases[layer, which] = bias.float()

    def put_norms(self, layer: int, attention: Tensor, feed_forward: Tensor) -> None:
        self._norms[layer] = attention.float(), feed_forward.float()

    def put_last_norm(self, norm: Tensor) -> None:
        self._norms[WHOLE_MODEL] = (norm.float(),)

    def put_low_rank(self, layer: int, which: MatrixName, down: Tensor, up: Tensor, *, writes: bool) -> None:
        self._products[layer, which, writes] = down.bfloat16().float(), up.bfloat16().float()

    def run(
        self, x_RC: Tensor, near: tuple[Tensor, Tensor], away: tuple[Tensor, Tensor] | None, parts: Sequence[Part]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """See `Layers.run`."""
        x, keys, values = x_RC.float(), [], []
        sizes = [self.heads * self.groups, self.heads, self.heads]
        for layer in range(self.layers):
            norm, feed_norm = self._norms[layer]
            by_head = self._times(layer, "qkv", rms_norm(x, norm, self.eps), away is not None)
            q, k, v = by_head.view(1, len(x), -1, self.head_width).transpose(1, 2).split(sizes, 1)
            frames = [rotate(q, *frame) for frame in (near, away) if frame is not None]
            attended = self._attended(layer, frames, rotate(k, *near), v, parts)
            x = x + self._times(layer, "out", attended.transpose(1, 2).reshape(len(x), -1), away is not None)
            gated = swiglu(self._times(layer, "gate_up", rms_norm(x, feed_norm, self.eps), away is not None))
            x = x + self._times(layer, "down", gated, away is not None)
            keys.append(k.bfloat16())
            values.append(v.bfloat16())
        return rms_norm(x, self._norms[WHOLE_MODEL][0], self.eps), torch.stack(keys), torch.stack(values)

    def _attended(self, layer: int, frames: Sequence[Tensor], k: Tensor, v: Tensor, parts: Sequence[Part]) -> Tensor:
        """[1,H*G,R,D]: attention of each part's rows to its own keys."""
        found, rows = [], slice(0, 0)
        for part in parts:
            rows = slice(rows.stop, rows.stop + part.rows)
            bias = None if part.hidden_RR is None else part.hidden_RR.repeat(self.groups, 1)[None, None]
            q = [frame[:, :, rows].reshape(1, self.heads, -1, self.head_width) for frame in frames]
            own: Segment = (q[0], k[:, :, rows], v[:, :, rows], bias)
            both = zip(q, (part.before, part.after), strict=False)
            seen = [(frame, side[0][layer], side[1][layer], None) for frame, sides in both for side in sides]
            found.append(segmented_attention([*seen, own]).view(1, -1, part.rows, self.head_width))
        return torch.cat(found, 2)

    def keep(self, keys: Tensor, values: Tensor) -> KeysValues:
        """See `Layers.keep`; float32 [L,1,H,T,D] here."""
        return keys.float(), values.float()

    def place(self, blocks: Sequence[KeysValues], angles: tuple[Tensor, Tensor]) -> KeysValues:
        """See `Layers.place`; a side is rotated keys and values float32 [L,1,H,T,D] here."""
        keys, values = (torch.cat(of, 3).float() for of in zip(*blocks, strict=True))
        return rotate(keys, *angles), values

    def head(self, x_RC: Tensor) -> Tensor:
        """See `Layers.head`."""
        return x_RC.float() @ self._matrices[WHOLE_MODEL, "head"].T

    def _times(self, layer: int, which: MatrixName, x: Tensor, writes: bool) -> Tensor:
        y = x @ self._matrices[layer, which].T + self._biases.get((layer, which), 0)
        for also in (False, True)[: 1 + writes]:
            if (layer, which, also) in self._products:
                down, up = self._products[layer, which, also]
                y = y + (x @ down.T) @ up.T
        return y
