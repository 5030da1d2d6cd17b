"""The baselines of fills: the plain model in torch, eager or compiled, and left-to-right decoding.

Dimensions: B sessions, R canvas rows, L layers, H key heads, G query heads per key head, T tokens, D head width.
"""

from collections.abc import Callable

import torch
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.network import KeyValueSegment
from mercury_engine.models.triton import TritonWeights, forward
from mercury_kernels import ops, reference
from mercury_kernels.operands import CanvasSlots, Frames, Table, TokenChoice
from mercury_kernels.pages import PagePool
from torch import Tensor
from torch.nn import functional as F

from on_gpu.shapes import Point

Tensors = tuple[Tensor, ...]


def plain_layer(x: Tensor, weights: Tensors, cached: Tensors, angles: Tensors, heads: int, eps: float) -> Tensor:
    """One layer of the writer as the model's own code computes it, from plain tensors so that one compile serves all.

    weights: norm, qkv, its bias (or empty), out, norm, gate_up, down; cached: keys and values before and after
    [B,H,T,D]; angles: cosines and sines of both frames [R,D].
    """
    attn_norm, qkv, bias, out, ffn_norm, gate_up, down = weights
    batch, rows, _ = x.shape
    width = cached[0].shape[-1]
    wide = F.linear(reference.rms_norm(x, attn_norm, eps), qkv, bias if bias.numel() else None)
    q, k, v = wide.split([wide.shape[-1] - 2 * heads * width, heads * width, heads * width], -1)
    q = q.view(batch, rows, heads, -1, width).permute(0, 2, 3, 1, 4)
    k, v = (t.view(batch, rows, heads, width).transpose(1, 2) for t in (k, v))
    near, away = (reference.rotate(q, *angles[i : i + 2]).flatten(2, 3) for i in (0, 2))
    k = reference.rotate(k, *angles[:2])
    segments = [(near, *cached[:2], None), (near, k, v, None), (away, *cached[2:], None)]
    attended = reference.segmented_attention(segments).view(batch, heads, -1, rows, width)
    x = x + F.linear(attended.permute(0, 3, 1, 2, 4).reshape(batch, rows, -1), out)
    return x + F.linear(reference.swiglu(F.linear(reference.rms_norm(x, ffn_norm, eps), gate_up)), down)


def plain_choice(x: Tensor, norm: Tensor, head: Tensor, mask_id: int, eps: float) -> Tensors:
    """The best token, its logit, log-sum-exp and entropy, computed from all logits."""
    logits = F.linear(reference.rms_norm(x, norm, eps), head).float().flatten(0, 1)
    logits[:, mask_id] = -1e30
    top, token = logits.max(-1)
    total = logits.logsumexp(-1)
    probability = (logits - total[:, None]).exp()
    return token.int(), top, total, total - (probability * logits.clamp_min(-1e4)).sum(-1)


class Plain:
    """Steps of the plain model over dense caches, for all sessions of a point."""

    def __init__(
        self,
        made: TorchDecoder,
        weights: TritonWeights,
        contexts: list[tuple[KeyValueSegment, KeyValueSegment]],
        point: Point,
    ) -> None:
        self.made, self.weights, self.config = made, weights, made.config
        batch, rows, device = point.sessions, point.slots + 1, made.device
        self.cached = [
            torch.cat([getattr(pair[side], part) for pair in contexts], 1)
            for side in (0, 1)
            for part in ("keys", "values")
        ]
        place = torch.arange(rows, device=device)
        self.angles = (*made.angles(place + 1), *made.angles(place - rows))
        whole = torch.zeros(batch, dtype=torch.int32, device=device)
        ids = torch.full((batch, rows), self.config.mask_id, dtype=torch.int32, device=device)
        ids[:, 0] = 7
        real = torch.ones(batch, rows, device=device)
        self.slots = CanvasSlots(ids, whole + rows, real[:, 0] * 0, whole + 99, real, whole.clone(), whole.clone())
        self.layer: Callable[..., Tensor] = plain_layer
        self.choice: Callable[..., Tensors] = plain_choice

    def compile(self, backend: str) -> None:
        """One compilation for all layers, one for the head."""
        self.layer = torch.compile(plain_layer, fullgraph=True, dynamic=False, backend=backend)
        self.choice = torch.compile(plain_choice, fullgraph=True, dynamic=False, backend=backend)

    @torch.no_grad()
    def choose(self) -> TokenChoice:
        x = F.embedding(self.slots.ids, self.weights.table)
        heads, eps = self.config.num_key_value_heads, self.config.rms_norm_eps
        empty = x.new_empty(0)
        for number, layer in enumerate(self.weights.layers):
            bias = empty if layer.qkv.bias is None else layer.qkv.bias
            tensors = (layer.attn_norm, layer.qkv.weight, bias, layer.out.weight)
            tensors += (layer.ffn_norm, layer.gate_up.weight, layer.down.weight)
            x = self.layer(x, tensors, tuple(t[number] for t in self.cached), self.angles, heads, eps)
        return TokenChoice(*self.choice(x, self.weights.norm, self.weights.head.weight, self.config.mask_id, eps))

    def step(self) -> None:
        reference.commit(self.slots, self.choose(), self.config.mask_id, self.config.end_id)


class LeftToRight:
    """Greedy decoding after the prefix with a paged cache and the same kernels, one token per step."""

    def __init__(
        self,
        made: TorchDecoder,
        weights: TritonWeights,
        contexts: list[tuple[KeyValueSegment, KeyValueSegment]],
        point: Point,
    ) -> None:
        self.weights, config = weights, made.config
        batch, device = point.sessions, made.device
        prefix = contexts[0][0].keys.shape[3]
        size = 64 if device.type == "cuda" else 16
        columns, own = -(-prefix // size), -(-point.slots // size) + 1
        shape = (config.num_hidden_layers, config.num_key_value_heads, config.head_dim)
        self.pool = PagePool(*shape, 1 + batch * (columns + own), made.embedding.dtype, device, size)
        pages, counts = [], []
        for before, _ in contexts:
            mine = self.pool.take(columns)
            self.pool.write(mine, before.keys[:, 0], before.values[:, 0])
            pages.append(mine + self.pool.take(own))
            counts.append(self.pool.counts(prefix) + [0] * own)
        ends = [[columns + own] * 2] * batch
        self.table = Table(*(torch.tensor(t, dtype=torch.int32, device=device) for t in (pages, counts, ends)))
        self.own, self.size = columns, size
        self.place = torch.zeros(batch, dtype=torch.int32, device=device)
        self.ids = torch.full((batch,), 7, dtype=torch.int32, device=device)
        self.angles = ops.rotary_table(0, point.slots + 1, config.head_dim, config.rope_theta, device)
        self.banned = torch.zeros(1, len(weights.table), dtype=torch.bool, device=device)
        self.banned[:, config.vocab_size :] = True
        self.starts = torch.arange(own, device=device, dtype=torch.int32) * size

    def restart(self) -> None:
        self.place.zero_()

    @torch.no_grad()
    def step(self) -> None:
        column = self.own + self.place // self.size
        page = self.table.pages.gather(1, column[:, None].long())[:, 0]
        self.table.counts[:, self.own :] = (self.place[:, None] + 1 - self.starts).clamp(0, self.size)
        frames = Frames(self.place, self.place, *self.angles, 0)
        places = page * self.size + self.place % self.size
        hidden = forward(self.weights, self.ids, frames, self.pool, places.int(), self.table)
        choice = ops.choices(
            hidden, self.weights.head, self.banned, torch.zeros_like(self.place), self.weights.norm, self.weights.eps
        )
        self.ids.copy_(choice.token)
        self.place += 1
