"""The network in torch: the reference for the C kernels, run by `torch_network.TorchNetwork`.

Dimensions as in `network.py`; S rows, N adapter rank.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from mercury_kernels.cpu.blocks import GROUP
from mercury_kernels.ops import (
    Segment,
    causal_attention,
    dense,
    rms_norm,
    rotary_angles,
    rotate,
    segmented_attention,
    swiglu,
)
from torch import Tensor, nn
from torch.nn import functional as F

from mercury_engine.models.network import KeyValueBlock, KeyValueSegment, ModelConfig, Packing

FACTOR_ROUNDING = 1e-12
"""Largest rounding error of a factor that should be 1."""

Angles = tuple[Tensor, Tensor]
"""Cosines and sines [B,1,1,R,D]."""


@dataclass(frozen=True, slots=True)
class PositionFrames:
    """Positions of rows toward the prefix and each other (`near`) and toward the suffix (`away`).

    The bias [B,1,G*R,R] applies among the rows.
    """

    near: Angles
    away: Angles | None
    bias: Tensor | None
    causal: bool = True
    """Whether rows without sides see no later ones, which needs no bias."""


def packing_bias(packing: Packing, groups: int, causal: bool = False) -> Tensor:
    """Additive mask [B,1,groups*R,R] that keeps canvases apart, and with `causal` hides later rows."""
    unseen: Tensor = packing.unseen(causal)
    bias = torch.zeros(unseen.shape, device=unseen.device).masked_fill(unseen, float("-inf"))
    return bias.repeat(1, groups, 1)[:, None]


Adapted = bool | str
"""What is added to the matrices: nothing (False), the writer's adapter (True), or the adapter of this name."""


class AdaptedLinear(nn.Module):
    """y = x W^T + b; for adapted rows plus (x A^T) B^T with A [N,in], B [out,N]. arXiv 2106.09685."""

    def __init__(self, inputs: int, outputs: int, bias: bool, rank: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.scales: nn.Parameter | None = None
        """Those of codes; see `operands.Matrix`."""
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None
        self.down = nn.Parameter(torch.randn(rank, inputs) * inputs**-0.5) if rank else None
        self.up = nn.Parameter(torch.zeros(outputs, rank)) if rank else None
        self.named: dict[str, tuple[Tensor, Tensor]] = {}
        """A and B of the adapters that forwards ask for by name."""

    def hold_codes(self) -> None:
        """Make the weight int8 codes, which are to be filled like their scales."""
        outputs, inputs = self.weight.shape
        codes, scales = torch.empty(outputs, inputs, dtype=torch.int8), torch.empty(inputs // GROUP, outputs).half()
        self.weight, self.scales = (nn.Parameter(each, requires_grad=False) for each in (codes, scales))

    def floats(self, dtype: torch.dtype) -> Tensor:
        """The weight; codes are decoded at every call."""
        return self.weight if self.scales is None else dense(self.weight, self.scales, dtype)

    def forward(self, x: Tensor, adapted: Adapted) -> Tensor:
        y = F.linear(x, self.floats(x.dtype), self.bias)
        if isinstance(adapted, str):
            down, up = self.named[adapted]
            y = y + F.linear(F.linear(x, down), up)
        elif adapted and self.down is not None and self.up is not None:
            y = y + F.linear(F.linear(x, self.down.to(x.dtype)), self.up.to(x.dtype))
        return y


def _times(x: Tensor, factor: float) -> Tensor:
    """x times a factor, without an operation for the usual 1."""
    return x if abs(factor - 1) < FACTOR_ROUNDING else x * factor


LayerKeyValues = tuple[Tensor, Tensor]
"""One layer's keys and values [B,H,T,D] of a side."""


class Layer(nn.Module):
    """Attention over segments, then the gated feed-forward, both after a norm and with a residual."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        c, rank = config.hidden_size, config.adapter_rank
        self.heads, self.head_dim, self.eps = config.num_key_value_heads, config.head_dim, config.rms_norm_eps
        self.groups = config.num_attention_heads // config.num_key_value_heads
        kv = self.heads * self.head_dim
        self.qkv_sizes = [self.groups * kv, kv, kv]
        self.attn_norm, self.ffn_norm = nn.Parameter(torch.empty(c)), nn.Parameter(torch.empty(c))
        self.score_factor, self.residual = config.score_factor * config.head_dim**0.5, config.residual_multiplier
        """Factors of queries, whose scores are divided by the root of the head width, and of what the layer adds."""
        self.head_norms = nn.ParameterList(
            nn.Parameter(torch.empty(config.head_dim)) for _ in range(2 * config.qk_norm)
        )
        """Norms of queries and keys, if the model has them."""
        self.qkv = AdaptedLinear(c, sum(self.qkv_sizes), config.attention_bias, rank)
        self.out = AdaptedLinear(self.groups * kv, c, False, rank)
        self.gate_up = AdaptedLinear(c, 2 * config.intermediate_size, False, rank)
        self.down = AdaptedLinear(config.intermediate_size, c, False, rank)

    def project(self, x: Tensor, adapted: Adapted) -> tuple[Tensor, Tensor, Tensor]:
        """x [B,S,C] to queries [B,H,G,S,D], keys [B,H,S,D] and values [B,H,S,D], not rotated."""
        batch, rows, _ = x.shape
        q, k, v = self.qkv(rms_norm(x, self.attn_norm, self.eps), adapted).split(self.qkv_sizes, -1)
        q = q.view(batch, rows, self.heads, self.groups, self.head_dim).permute(0, 2, 3, 1, 4)
        k = k.view(batch, rows, self.heads, self.head_dim).transpose(1, 2)
        if self.head_norms:
            q, k = (rms_norm(x, norm, self.eps) for x, norm in zip((q, k), self.head_norms, strict=True))
        q = _times(q, self.score_factor)
        return q, k, v.view(batch, rows, self.heads, self.head_dim).transpose(1, 2)

    def forward(
        self,
        x: Tensor,
        frames: PositionFrames,
        before: list[LayerKeyValues],
        after: list[LayerKeyValues],
        adapted: Adapted,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Rows [B,R,C] after the layer, and their keys before rotation and values [B,H,R,D]."""
        q, k, v = self.project(x, adapted)
        q_near = rotate(q, *frames.near).flatten(2, 3)
        cos, sin = frames.near
        own: Segment = (q_near, rotate(k, cos[:, 0], sin[:, 0]), v, frames.bias)
        segments: list[Segment] = [*((q_near, *keys, None) for keys in before), own]
        if frames.away is not None:
            q_away = rotate(q, *frames.away).flatten(2, 3)
            segments += [(q_away, *keys, None) for keys in after]
        alone = frames.causal and frames.away is None and not before
        attended = causal_attention(*own[:3]) if alone else segmented_attention(segments)
        return self.finish(x, attended, adapted), k, v

    def finish(self, x: Tensor, attended: Tensor, adapted: Adapted) -> Tensor:
        """Residual of attention [B,H,G*S,D] (G outermost) and the feed-forward."""
        batch, rows, _ = x.shape
        merged = attended.view(batch, self.heads, self.groups, rows, self.head_dim).permute(0, 3, 1, 2, 4)
        x = x + _times(self.out(merged.reshape(batch, rows, -1), adapted), self.residual)
        gated = swiglu(self.gate_up(rms_norm(x, self.ffn_norm, self.eps), adapted))
        return x + _times(self.down(gated, adapted), self.residual)


class TorchDecoder(nn.Module):
    """Embedding, layers, norm, head. `read` is causal, `write` bidirectional and adapted."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.groups = config.num_attention_heads // config.num_key_value_heads
        shape = config.vocab_size, config.hidden_size
        self.embedding = nn.Parameter(torch.empty(shape))
        self.head = None if config.tie_word_embeddings else nn.Parameter(torch.empty(shape))
        self.markers = nn.Parameter(torch.zeros(2, config.hidden_size))
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.Parameter(torch.empty(config.hidden_size))
        self.requires_grad_(False)

    @property
    def device(self) -> torch.device:
        return self.embedding.device

    @property
    def head_matrix(self) -> Tensor:
        """[V,C] that makes logits of hidden states."""
        return self.embedding if self.head is None else self.head

    @property
    def has_codes(self) -> bool:
        """Whether the layers' weights have eight bits."""
        return self._layers()[0].qkv.scales is not None

    @property
    def weight_bytes(self) -> int:
        return sum(each.nbytes for each in self.parameters())

    @property
    def named_adapters(self) -> tuple[str, ...]:
        """Names of the adapters that `read` takes."""
        return tuple(self._layers()[0].qkv.named)

    def embed(self, ids: Tensor) -> Tensor:
        """ids [...] including mask and end to [...,C]."""
        if not self.config.adapter_rank:
            return _times(F.embedding(ids, self.embedding), self.config.embedding_multiplier)
        size = len(self.embedding)
        known = _times(F.embedding(ids.clamp(max=size - 1), self.embedding), self.config.embedding_multiplier)
        marker = F.embedding((ids - size).clamp(min=0), self.markers).to(known.dtype)
        return torch.where((ids >= size)[..., None], marker, known)

    def angles(self, positions: Tensor) -> Angles:
        return rotary_angles(positions, self.config.head_dim, self.config.rope_theta, self.config.rope_factors)

    def read(
        self,
        ids_BT: Tensor,
        past: Sequence[KeyValueSegment] = (),
        start: int = 0,
        packing: Packing | None = None,
        adapted: Adapted = False,
        block: int | None = 1,
    ) -> tuple[Tensor, KeyValueBlock]:
        """Causal hidden states [B,T,C] after `past`, and the block of their keys and values.

        `block`: see `ForwardRequest`.

        Positions count from start. With a packing the rows are several runs that do not see each other and all begin
        at position start.
        """
        assert packing is None or past, "runs side by side need something before them"
        if packing is None:
            place = torch.arange(ids_BT.shape[1], device=ids_BT.device)[None]
            packing = Packing(torch.zeros_like(place), place, place)
        near = self.angles((start + packing.place)[:, None, None])
        bias = None
        if block is not None:
            blocks = packing if block == 1 else Packing(packing.canvas, packing.place // block, packing.rows)
            bias = packing_bias(blocks, self.groups, causal=True)
        x = _times(F.embedding(ids_BT, self.embedding), self.config.embedding_multiplier)
        frames = PositionFrames(near, None, bias, causal=block == 1)
        hidden, kept = self.run(x, frames, past, (), adapted)
        assert kept is not None
        return hidden, kept

    def write(
        self,
        ids_BR: Tensor,
        before: Sequence[KeyValueSegment],
        after: Sequence[KeyValueSegment],
        ends_B: Tensor,
        packing: Packing | None = None,
    ) -> Tensor:
        """Hidden states [B,R,C] of canvas rows, see `Network.denoise_together`; without a packing one canvas each."""
        frames = canvas_frames(self.angles, ids_BR, ends_B, packing, self.groups)
        return self.run(self.embed(ids_BR), frames, before, after, adapted=True)[0]

    def run(
        self,
        x_BRC: Tensor,
        frames: PositionFrames,
        before: Sequence[KeyValueSegment],
        after: Sequence[KeyValueSegment],
        adapted: Adapted,
    ) -> tuple[Tensor, KeyValueBlock | None]:
        """Run embedded rows through all layers and the last norm; rows of a single frame also return their block."""
        x = x_BRC
        keys, values = [], []
        for number, layer in enumerate(self._layers()):
            sides = ([(each.keys[number], each.values[number]) for each in side] for side in (before, after))
            x, k, v = layer(x, frames, *sides, adapted)
            keys.append(k)
            values.append(v)
        block = KeyValueBlock(torch.stack(keys), torch.stack(values)) if frames.away is None else None
        return rms_norm(x, self.norm, self.config.rms_norm_eps), block

    def logits(self, hidden: Tensor) -> Tensor:
        """[...,C] to float32 [...,V]."""
        return self.scaled(F.linear(hidden, self.head_matrix).float())

    def scaled(self, products: Tensor) -> Tensor:
        """Logits from products of hidden states and head."""
        return _times(products, 1 / self.config.logits_scaling)

    def writer_logits(self, hidden: Tensor) -> Tensor:
        """[...,C] to float32 [...,V+2]: the vocabulary, mask (never predicted, -inf) and end."""
        logits = self.logits(hidden)
        end = F.linear(hidden, self.markers[1:].to(hidden.dtype)).float()
        return torch.cat((logits, torch.full_like(end, float("-inf")), end), -1)

    def rotated(self, block: KeyValueBlock, start: int) -> KeyValueSegment:
        return self.placed(block, torch.arange(start, start + block.tokens, device=block.keys.device))

    def side_by_side(self, blocks: Sequence[KeyValueBlock], start: int) -> KeyValueSegment:
        return self.rotated(
            KeyValueBlock(*(torch.cat(each, 3) for each in zip(*((b.keys, b.values) for b in blocks), strict=True))),
            start,
        )

    def placed(self, block: KeyValueBlock, positions: Tensor) -> KeyValueSegment:
        """The block's segment with its tokens at the positions [T] of a frame."""
        cos, sin = self.angles(positions)
        return KeyValueSegment(rotate(block.keys, cos, sin), block.values)

    def _layers(self) -> list[Layer]:
        return list(self.layers)  # type: ignore[arg-type]


def canvas_frames(
    angles: Callable[[Tensor], Angles], ids_BR: Tensor, ends_B: Tensor, packing: Packing | None, groups: int
) -> PositionFrames:
    """The frames of canvas rows, see `Network.write`; `angles` maps positions to rotary angles."""
    rows = torch.arange(ids_BR.shape[1], device=ids_BR.device)[None]
    place, length = (rows, ids_BR.shape[1]) if packing is None else (packing.place, packing.rows)
    near = angles((ends_B[:, None] + place)[:, None, None])
    away = angles((place - length)[:, None, None])
    return PositionFrames(near, away, None if packing is None else packing_bias(packing, groups))
