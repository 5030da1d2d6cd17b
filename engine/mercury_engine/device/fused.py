"""A network's layers over fixed buffers in five of our kernels each, for rows without an adapter.

Dimensions: R rows, T keys, H key heads, D head width, C channels, L layers.
"""

from typing import NamedTuple

import torch
from mercury_kernels import ops
from mercury_kernels.ops import Matrix, RowPlaces, Visibility
from torch import Tensor

from mercury_engine.device.rows import Rows
from mercury_engine.models.decoder import Layer, TorchDecoder


class _Layer(NamedTuple):
    """One layer's norms and matrices."""

    attn_norm: Tensor
    qkv: Matrix
    head_norms: Tensor | None
    out: Matrix
    ffn_norm: Tensor
    gate_up: Matrix
    down: Matrix

    @classmethod
    def of(cls, layer: Layer) -> "_Layer":
        qkv, out, gate_up, down = (
            Matrix(part.weight, part.bias) for part in (layer.qkv, layer.out, layer.gate_up, layer.down)
        )
        norms = torch.stack([*layer.head_norms]) if layer.head_norms else None
        return cls(layer.attn_norm, qkv, norms, out, layer.ffn_norm, gate_up, down)


class FusedLayers:
    """The layers of one network; `layers.TorchLayers` says what they compute."""

    def __init__(self, decoder: TorchDecoder, positions: int) -> None:
        """`positions`: those from 0 on that rows may have."""
        self._decoder, half = decoder, decoder.config.head_dim // 2
        self._layers = [_Layer.of(layer) for layer in decoder.layers if isinstance(layer, Layer)]
        self._place = torch.arange(positions, device=decoder.device)
        self._cos, self._sin = (each[:, :half].contiguous() for each in decoder.angles(self._place))

    def forward(self, rows: Rows, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """See `layers.TorchLayers.forward`."""
        config, place = self._decoder.config, self._place[: keys.shape[2]]
        slots = rows.slots(place)
        places = RowPlaces(self._cos[rows.positions], self._sin[rows.positions], slots.int())
        numbers = rows.orders(place, slots), rows.first, rows.limit, rows.held + len(slots)
        seen = Visibility(*(each.int() for each in numbers))
        x, own = self._decoder.embed(rows.ids), []
        for layer, layer_keys, layer_values in zip(self._layers, keys, values, strict=True):
            norm, eps = layer.attn_norm, config.rms_norm_eps
            q, k = ops.project_qkv(x, norm, eps, layer.qkv, layer.head_norms, places, layer_keys, layer_values)
            own.append(k)
            attended = ops.attention(q, layer_keys, layer_values, seen, config.score_factor)
            x = ops.linear(attended, layer.out, residual=x)
            inner = ops.linear(x, layer.gate_up, layer.ffn_norm, eps, gated=True)
            x = ops.linear(inner, layer.down, residual=x)
        own_values = values.index_select(2, slots).transpose(1, 2)
        return ops.rms_norm(x, self._decoder.norm, eps), torch.stack(own), own_values
