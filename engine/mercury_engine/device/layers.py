"""A network's layers over fixed buffers, by torch's operations: any family, any device, and the host waits for nothing.

Dimensions: R rows, T keys, H key heads, G query heads per key head, D head width, C channels, L layers.
"""

import torch
from mercury_kernels.ops import rms_norm, swiglu
from torch import Tensor
from torch.nn import functional as F

from mercury_engine.device.rows import Rows
from mercury_engine.models.decoder import Adapted, AdaptedLinear, Layer, TorchDecoder


class TorchLayers:
    """The layers of one network."""

    def __init__(self, decoder: TorchDecoder, positions: int) -> None:
        """`positions`: those from 0 on that rows may have."""
        self._decoder, dtype, half = decoder, decoder.embedding.dtype, decoder.config.head_dim // 2
        self._place = torch.arange(positions, device=decoder.device)
        cos, sin = decoder.angles(self._place)
        sin[:, :half].neg_()
        self._cos, self._signed_sin = cos.to(dtype), sin.to(dtype)

    def forward(self, rows: Rows, keys: Tensor, values: Tensor, adapted: Adapted) -> tuple[Tensor, Tensor, Tensor]:
        """Hidden states [R,C], and the rows' keys before rotation and values, [L,R,H,D] both.

        keys and values [L,H,T,D] are rotated; those of the rows are written first, so that rows see each other.
        """
        decoder = self._decoder
        x, place = decoder.embed(rows.ids), self._place[: keys.shape[2]]
        turn = self._cos[rows.positions][:, None], self._signed_sin[rows.positions][:, None]
        slots = rows.slots(place)
        bias = self._bias(rows, rows.orders(place, slots)).repeat(decoder.groups, 1)
        made = []
        for layer, layer_keys, layer_values in zip(decoder.layers, keys, values, strict=True):
            assert isinstance(layer, Layer)
            wide, v = _project(layer, x, adapted)
            heads = [layer.heads * layer.groups, layer.heads]
            made.append((wide.split(heads, 1)[1], v))
            q, k = _turned(wide, *turn).split(heads, 1)
            layer_keys.index_copy_(1, slots, k.transpose(0, 1))
            layer_values.index_copy_(1, slots, v.transpose(0, 1))
            x = _plus(x, layer.out, _attended(layer, q, layer_keys, layer_values, bias), layer.residual, adapted)
            inner = swiglu(layer.gate_up(rms_norm(x, layer.ffn_norm, layer.eps), adapted))
            x = _plus(x, layer.down, inner, layer.residual, adapted)
        own_keys, own_values = (torch.stack(each) for each in zip(*made, strict=True))
        return rms_norm(x, decoder.norm, decoder.config.rms_norm_eps), own_keys, own_values

    def _bias(self, rows: Rows, order: Tensor) -> Tensor:
        """[R,T]: 0 for keys that a row sees, -inf for others."""
        seen = (order <= rows.limit[:, None]) & ((order >= rows.first[:, None]) | (order == 0))
        return torch.where(seen, 0.0, float("-inf")).to(self._cos.dtype)


def _project(layer: Layer, x: Tensor, adapted: Adapted) -> tuple[Tensor, Tensor]:
    """Queries with keys behind them [R,H*G+H,D], not rotated, and values [R,H,D]."""
    qkv = layer.qkv(rms_norm(x, layer.attn_norm, layer.eps), adapted).view(len(x), -1, layer.head_dim)
    wide, v = qkv.split([layer.heads * (layer.groups + 1), layer.heads], 1)
    if layer.head_norms:
        parts = wide.split([layer.heads * layer.groups, layer.heads], 1)
        normed = [rms_norm(each, norm, layer.eps) for each, norm in zip(parts, layer.head_norms, strict=True)]
        wide = torch.cat(normed, 1)
    return wide, v


def _turned(x: Tensor, cos: Tensor, signed_sin: Tensor) -> Tensor:
    """x [R,h,D] rotated; the sines of the left half are negative."""
    return torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, -1), signed_sin)


def _attended(layer: Layer, q: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
    """[R,H*G*D] of queries [R,H*G,D] over keys and values [H,T,D]; bias [G*R,T]."""
    rows = len(q)
    folded = q.view(rows, layer.heads, layer.groups, -1).permute(1, 2, 0, 3).flatten(1, 2)
    factor = layer.score_factor * layer.head_dim**-0.5
    out = F.scaled_dot_product_attention(folded[None], keys[None], values[None], bias[None, None], scale=factor)[0]
    return out.view(layer.heads, layer.groups, rows, -1).permute(2, 0, 1, 3).reshape(rows, -1)


def _plus(x: Tensor, matrix: AdaptedLinear, y: Tensor, factor: float, adapted: Adapted) -> Tensor:
    """x plus the factor times what the matrix makes of y."""
    if adapted:
        return torch.add(x, matrix(y, adapted), alpha=factor)
    return torch.addmm(x, y, matrix.floats(y.dtype).T, alpha=factor)
