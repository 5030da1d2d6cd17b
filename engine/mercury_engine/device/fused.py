"""A network's layers over fixed buffers, in five of our kernels each.

Dimensions: R rows, T keys, H key heads, D head width, C channels, L layers.
"""

from dataclasses import dataclass

import torch
from mercury_kernels import ops
from mercury_kernels.ops import Matrix, RowPlaces, Visibility
from torch import Tensor

from mercury_engine.device.rows import Rows
from mercury_engine.models.decoder import Adapted, AdaptedLinear, Layer, TorchDecoder

Product = dict[Adapted, Matrix]
"""A matrix without an adapter (False), and with each that it has."""


def _product(part: AdaptedLinear, kind: torch.dtype) -> Product:
    factors = dict[Adapted, tuple[Tensor, Tensor]](part.named.items())
    if part.down is not None and part.up is not None:
        factors[True] = part.down, part.up
    made = {
        name: Matrix(part.weight, part.bias, down.to(kind).contiguous(), up.to(kind).contiguous(), part.scales)
        for name, (down, up) in factors.items()
    }
    return {False: Matrix(part.weight, part.bias, scales=part.scales)} | made


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer's norms and products."""

    attn_norm: Tensor
    qkv: Product
    head_norms: Tensor | None
    out: Product
    ffn_norm: Tensor
    gate_up: Product
    down: Product

    @classmethod
    def of(cls, layer: Layer) -> "_Layer":
        parts, kind = (layer.qkv, layer.out, layer.gate_up, layer.down), layer.attn_norm.dtype
        qkv, out, gate_up, down = (_product(part, kind) for part in parts)
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

    def forward(self, rows: Rows, keys: Tensor, values: Tensor, adapted: Adapted) -> tuple[Tensor, Tensor, Tensor]:
        """See `layers.TorchLayers.forward`."""
        config, place = self._decoder.config, self._place[: keys.shape[2]]
        eps, slots = config.rms_norm_eps, rows.slots(place)
        places = RowPlaces(self._cos[rows.positions], self._sin[rows.positions], slots.int())
        numbers = rows.orders(place, slots), rows.first, rows.limit, rows.held + len(slots)
        seen = Visibility(*(each.int() for each in numbers))
        x, own = self._decoder.embed(rows.ids), list[Tensor]()
        for layer, layer_keys, layer_values in zip(self._layers, keys, values, strict=True):
            given = layer.qkv[adapted], layer.head_norms, places, layer_keys, layer_values
            q, k = ops.project_qkv(x, layer.attn_norm, eps, *given)
            own.append(k)
            attended = ops.attention(q, layer_keys, layer_values, seen, config.score_factor)
            x = ops.linear(attended, layer.out[adapted], residual=x)
            inner = ops.linear(x, layer.gate_up[adapted], layer.ffn_norm, eps, gated=True)
            x = ops.linear(inner, layer.down[adapted], residual=x)
        own_values = values.index_select(2, slots).transpose(1, 2)
        return ops.rms_norm(x, self._decoder.norm, eps), torch.stack(own), own_values
