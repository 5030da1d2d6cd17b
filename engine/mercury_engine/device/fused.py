"""A network's layers over fixed buffers in five of our kernels each, and eight more for rows with an adapter.

Dimensions: R rows, T keys, H key heads, D head width, C channels, L layers.
"""

from dataclasses import dataclass

import torch
from mercury_kernels import ops
from mercury_kernels.ops import Matrix, RowPlaces, Visibility
from torch import Tensor

from mercury_engine.device.rows import Rows
from mercury_engine.models.decoder import Adapted, AdaptedLinear, Layer, TorchDecoder


@dataclass(frozen=True, slots=True)
class _Product:
    """A matrix with its adapters."""

    matrix: Matrix
    adapters: dict[Adapted, tuple[Matrix, Matrix]]
    """Both factors of each."""

    @classmethod
    def of(cls, part: AdaptedLinear) -> "_Product":
        adapters = dict[Adapted, tuple[Tensor, Tensor]](part.named.items())
        if part.down is not None and part.up is not None:
            adapters[True] = part.down, part.up
        kind = part.weight.dtype
        made = {name: (Matrix(down.to(kind)), Matrix(up.to(kind))) for name, (down, up) in adapters.items()}
        return cls(Matrix(part.weight, part.bias), made)

    def added(self, x: Tensor, adapted: Adapted, norm: Tensor | None = None, eps: float = 0.0) -> Tensor | None:
        """What the adapter adds to the product with x [R,in]; None for no adapter."""
        if not adapted:
            return None
        down, up = self.adapters[adapted]
        return ops.linear(ops.linear(x, down, norm, eps), up)


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer's norms and products."""

    attn_norm: Tensor
    qkv: _Product
    head_norms: Tensor | None
    out: _Product
    ffn_norm: Tensor
    gate_up: _Product
    down: _Product

    @classmethod
    def of(cls, layer: Layer) -> "_Layer":
        qkv, out, gate_up, down = map(_Product.of, (layer.qkv, layer.out, layer.gate_up, layer.down))
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
            norm, extra = layer.attn_norm, layer.qkv.added(x, adapted, layer.attn_norm, eps)
            given = places, layer_keys, layer_values
            q, k = ops.project_qkv(x, norm, eps, layer.qkv.matrix, layer.head_norms, *given, extra)
            own.append(k)
            attended = ops.attention(q, layer_keys, layer_values, seen, config.score_factor)
            x = ops.linear(attended, layer.out.matrix, residual=x, extra=layer.out.added(attended, adapted))
            extra = layer.gate_up.added(x, adapted, layer.ffn_norm, eps)
            inner = ops.linear(x, layer.gate_up.matrix, layer.ffn_norm, eps, gated=True, extra=extra)
            x = ops.linear(inner, layer.down.matrix, residual=x, extra=layer.down.added(inner, adapted))
        own_values = values.index_select(2, slots).transpose(1, 2)
        return ops.rms_norm(x, self._decoder.norm, eps), torch.stack(own), own_values
