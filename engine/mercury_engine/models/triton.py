"""The network in Triton: weights laid out for the kernels, and a forward pass through pages of keys and values.

Dimensions: M rows, C channels, V vocabulary.
"""

from dataclasses import dataclass

import torch
from mercury_kernels import ops
from mercury_kernels.ops import Matrix, RowPositions, Table
from mercury_kernels.pages import PagePool
from torch import Tensor
from torch.nn import functional as F

from mercury_engine.models.decoder import Layer, TorchDecoder


@dataclass(frozen=True, slots=True)
class TritonLayer:
    """One layer's norms and matrices."""

    attn_norm: Tensor
    qkv: Matrix
    out: Matrix
    ffn_norm: Tensor
    gate_up: Matrix
    down: Matrix


@dataclass(frozen=True, slots=True)
class TritonWeights:
    """A network laid out for the kernels."""

    table: Tensor
    head: Matrix
    norm: Tensor
    layers: tuple[TritonLayer, ...]
    eps: float

    @classmethod
    @torch.no_grad()
    def of(cls, network: TorchDecoder) -> "TritonWeights":
        """The weights of a causal model."""
        head = Matrix(network.embedding if network.head is None else network.head)
        return cls(network.embedding, head, network.norm, _layers(network), network.config.rms_norm_eps)


def _layers(network: TorchDecoder) -> tuple[TritonLayer, ...]:
    return tuple(_layer(layer) for layer in network.layers if isinstance(layer, Layer))


def _layer(layer: Layer) -> TritonLayer:
    qkv, out, gate_up, down = (
        Matrix(part.weight, part.bias) for part in (layer.qkv, layer.out, layer.gate_up, layer.down)
    )
    return TritonLayer(layer.attn_norm, qkv, out, layer.ffn_norm, gate_up, down)


def forward(
    weights: TritonWeights, ids: Tensor, places: RowPositions, pool: PagePool, slots: Tensor, table: Table
) -> Tensor:
    """Hidden states [M,C] before the last norm, for tokens ids [M] whose keys and values are stored in slots [M]."""
    x = F.embedding(ids, weights.table)
    for layer, keys, values in zip(weights.layers, pool.keys, pool.values, strict=True):
        q = ops.project_qkv(x, layer.attn_norm, weights.eps, layer.qkv, places, keys, values, slots)
        x = ops.linear(ops.paged_attention(q, keys, values, table), layer.out, residual=x)
        inner = ops.linear(x, layer.gate_up, layer.ffn_norm, weights.eps, gated=True)
        x = ops.linear(inner, layer.down, residual=x)
    return x
