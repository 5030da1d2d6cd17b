"""The network: a causal reader of context blocks and a bidirectional writer of the canvas.

Dimensions: B batch, T context tokens, R canvas rows (the last prefix token, then the slots), C width,
L layers, H key heads, G query heads per key head, D head width, V vocabulary, N adapter rank.

Both roles run the same pretrained decoder (Llama and Qwen2 families). The writer adds a low-rank adapter to
every matrix and two rows of its own to the vocabulary: mask and end.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from mercury_kernels.ops import Segment, causal_attention, rms_norm, rotary_angles, rotate, segmented_attention, swiglu
from torch import Tensor, nn
from torch.nn import functional as F

LENGTH_CLASSES = 65
"""Classes of the length head: 0 to 64 slots before the end marker."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Shape of a decoder; fields as in the Hugging Face configuration of the same model."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rope_theta: float
    rms_norm_eps: float
    attention_bias: bool = False
    tie_word_embeddings: bool = True
    name: str = "unnamed"
    adapter_rank: int = 0
    """0: a plain reader without a writer."""

    @property
    def mask_id(self) -> int:
        """Input row of a masked slot; never an output."""
        return self.vocab_size

    @property
    def end_id(self) -> int:
        """The end marker: the slot and all to its right lie behind the gap's text."""
        return self.vocab_size + 1


@dataclass(slots=True)
class KeyValueBlock:
    """Keys before rotation and values [L,B,H,T,D] of tokens read as one causal run, or as `Network.kept` has them."""

    keys: Tensor
    values: Tensor

    @property
    def tokens(self) -> int:
        return self.keys.shape[3]


@dataclass(slots=True)
class KeyValueSegment:
    """What stands on one side of the canvas: rotated keys and values [L,B,H,T,D]; bias [B,1,1,T] hides padding."""

    keys: Tensor
    values: Tensor
    bias: Tensor | None = None

    def at(self, layer: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """One layer's keys [B,H,T,D] and values, and the bias."""
        return self.keys[layer], self.values[layer], self.bias


@dataclass(frozen=True, slots=True)
class Packing:
    """Several canvases of one request side by side: of every row [B,R] its canvas, its place there, its rows.

    Rows of the same canvas see each other; padding is a canvas of its own.
    """

    canvas: Tensor
    place: Tensor
    rows: Tensor

    def bias(self, groups: int, causal: bool = False) -> Tensor:
        """Additive mask [B,1,groups*R,R] that keeps the canvases apart, and with `causal` hides later rows."""
        hidden = self.canvas[:, :, None] != self.canvas[:, None, :]
        if causal:
            hidden |= self.place[:, :, None] < self.place[:, None, :]
        bias = torch.zeros(hidden.shape, device=hidden.device).masked_fill(hidden, float("-inf"))
        return bias.repeat(1, groups, 1)[:, None]


@dataclass(frozen=True, slots=True)
class ForwardRequest:
    """One request's part of a forward pass: tokens [1,T] to read, see `Network.read`."""

    ids_BT: Tensor
    past: Sequence[KeyValueSegment] = ()
    start: int = 0
    packing: Packing | None = None
    wanted: Sequence[int] = ()
    """Rows whose next tokens are asked for."""

    @property
    def rows(self) -> int:
        return self.ids_BT.shape[1]


def packed(canvases: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Packing]:
    """Ids [1,R] of several canvases of one request side by side, and where each stands."""
    rows = [(i, n, place, len(ids)) for n, ids in enumerate(canvases) for place, i in enumerate(ids)]
    ids, canvas, place, length = torch.tensor(rows, device=device)[None].unbind(-1)
    return ids, Packing(canvas, place, length)


Angles = tuple[Tensor, Tensor]
"""Cosines and sines [B,1,1,R,D]."""


Attention = Callable[[list[Segment], list[Segment]], Tensor]
"""Attention to the segments toward the prefix, the rows' own last, and to those toward the suffix."""


@dataclass(frozen=True, slots=True)
class PositionFrames:
    """Where rows stand: toward the prefix and each other, toward the suffix; bias [B,1,G*R,R] among them.

    `attend` takes the place of the stock attention where the rows of many requests are packed into one.
    """

    near: Angles
    away: Angles | None
    bias: Tensor | None
    attend: Attention | None = None


class AdaptedLinear(nn.Module):
    """y = x W^T + b; for the writer's rows plus (x A^T) B^T with A [N,in], B [out,N]. arXiv 2106.09685."""

    def __init__(self, inputs: int, outputs: int, bias: bool, rank: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs), requires_grad=False)
        self.bias = nn.Parameter(torch.empty(outputs), requires_grad=False) if bias else None
        self.down = nn.Parameter(torch.randn(rank, inputs) * inputs**-0.5) if rank else None
        self.up = nn.Parameter(torch.zeros(outputs, rank)) if rank else None

    def forward(self, x: Tensor, adapted: bool) -> Tensor:
        y = F.linear(x, self.weight, self.bias)
        if adapted and self.down is not None and self.up is not None:
            y = y + F.linear(F.linear(x, self.down.to(x.dtype)), self.up.to(x.dtype))
        return y


LayerKeyValues = tuple[Tensor, Tensor, Tensor | None]
"""What one layer sees of a side, see `KeyValueSegment.at`."""


class Layer(nn.Module):
    """Attention over segments, then the gated feed-forward, both behind a norm and with a residual."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        c, rank = config.hidden_size, config.adapter_rank
        self.heads, self.head_dim, self.eps = config.num_key_value_heads, config.head_dim, config.rms_norm_eps
        self.groups = config.num_attention_heads // config.num_key_value_heads
        kv = self.heads * self.head_dim
        self.qkv_sizes = [self.groups * kv, kv, kv]
        self.attn_norm = nn.Parameter(torch.empty(c), requires_grad=False)
        self.ffn_norm = nn.Parameter(torch.empty(c), requires_grad=False)
        self.qkv = AdaptedLinear(c, sum(self.qkv_sizes), config.attention_bias, rank)
        self.out = AdaptedLinear(self.groups * kv, c, False, rank)
        self.gate_up = AdaptedLinear(c, 2 * config.intermediate_size, False, rank)
        self.down = AdaptedLinear(config.intermediate_size, c, False, rank)

    def project(self, x: Tensor, adapted: bool) -> tuple[Tensor, Tensor, Tensor]:
        """x [B,S,C] to queries [B,H,G,S,D], keys [B,H,S,D] and values [B,H,S,D], not rotated."""
        batch, rows, _ = x.shape
        q, k, v = self.qkv(rms_norm(x, self.attn_norm, self.eps), adapted).split(self.qkv_sizes, -1)
        q = q.view(batch, rows, self.heads, self.groups, self.head_dim).permute(0, 2, 3, 1, 4)
        k = k.view(batch, rows, self.heads, self.head_dim).transpose(1, 2)
        return q, k, v.view(batch, rows, self.heads, self.head_dim).transpose(1, 2)

    def forward(
        self,
        x: Tensor,
        frames: PositionFrames,
        before: list[LayerKeyValues],
        after: list[LayerKeyValues],
        adapted: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Rows [B,R,C] behind the layer, and their keys before rotation and values [B,H,R,D]."""
        q, k, v = self.project(x, adapted)
        q_near = rotate(q, *frames.near).flatten(2, 3)
        cos, sin = frames.near
        own: Segment = (q_near, rotate(k, cos[:, 0], sin[:, 0]), v, frames.bias)
        near: list[Segment] = [*((q_near, *keys) for keys in before), own]
        away: list[Segment] = []
        if frames.away is not None:
            q_away = rotate(q, *frames.away).flatten(2, 3)
            away = [(q_away, *keys) for keys in after]
        if frames.attend is not None:
            attended = frames.attend(near, away)
        else:
            alone = frames.away is None and not before
            attended = causal_attention(*own[:3]) if alone else segmented_attention(near + away)
        return self.finish(x, attended, adapted), k, v

    def finish(self, x: Tensor, attended: Tensor, adapted: bool) -> Tensor:
        """Residual of attention [B,H,G*S,D] (G outermost) and the feed-forward."""
        batch, rows, _ = x.shape
        merged = attended.view(batch, self.heads, self.groups, rows, self.head_dim).permute(0, 3, 1, 2, 4)
        x = x + self.out(merged.reshape(batch, rows, -1), adapted)
        return x + self.down(swiglu(self.gate_up(rms_norm(x, self.ffn_norm, self.eps), adapted)), adapted)


class Network(nn.Module):
    """Embedding, layers, norm, head. `read` is causal and frozen, `write` bidirectional and adapted."""

    backend = "torch"

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.groups = config.num_attention_heads // config.num_key_value_heads
        self.embedding = nn.Parameter(torch.empty(config.vocab_size, config.hidden_size), requires_grad=False)
        self.head = (
            None
            if config.tie_word_embeddings
            else nn.Parameter(torch.empty(config.vocab_size, config.hidden_size), requires_grad=False)
        )
        self.markers = nn.Parameter(torch.zeros(2, config.hidden_size), requires_grad=config.adapter_rank > 0)
        self.length = nn.Parameter(torch.zeros(LENGTH_CLASSES, config.hidden_size)) if config.adapter_rank else None
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.Parameter(torch.empty(config.hidden_size), requires_grad=False)

    def prepare(self) -> None:
        """Do now what would else delay the first use; here there is nothing."""

    def embed(self, ids: Tensor) -> Tensor:
        """ids [...] including mask and end to [...,C]."""
        size = self.config.vocab_size
        known = F.embedding(ids.clamp(max=size - 1), self.embedding)
        marker = F.embedding((ids - size).clamp(min=0), self.markers).to(known.dtype)
        return torch.where((ids >= size)[..., None], marker, known)

    def angles(self, positions: Tensor) -> Angles:
        return rotary_angles(positions, self.config.head_dim, self.config.rope_theta)

    def read(
        self, ids_BT: Tensor, past: Sequence[KeyValueSegment] = (), start: int = 0, packing: Packing | None = None
    ) -> tuple[Tensor, KeyValueBlock]:
        """Causal hidden states [B,T,C] behind `past`, and the block they leave; positions count from start.

        With a packing the rows are several runs that do not see each other, each of them starting there.
        """
        assert packing is None or past, "runs side by side need something before them"
        if packing is None:
            place = torch.arange(ids_BT.shape[1], device=ids_BT.device)[None]
            packing = Packing(torch.zeros_like(place), place, place)
        near = self.angles((start + packing.place)[:, None, None])
        bias = packing.bias(self.groups, causal=True)
        x = F.embedding(ids_BT, self.embedding)
        hidden, block = self.run(x, PositionFrames(near, None, bias), past, (), adapted=False)
        assert block is not None
        return hidden, block

    def read_together(self, forwards: Sequence[ForwardRequest]) -> list[tuple[Tensor, KeyValueBlock]]:
        """What `read` returns for each, in one pass where that is cheaper."""
        return [self.read(each.ids_BT, each.past, each.start, each.packing) for each in forwards]

    def write(
        self,
        ids_BR: Tensor,
        before: Sequence[KeyValueSegment],
        after: Sequence[KeyValueSegment],
        ends_B: Tensor,
        packing: Packing | None = None,
    ) -> Tensor:
        """Hidden states [B,R,C] of canvas rows that see each other and the sides before and after the gap.

        Row 0 of a canvas is the last prefix token and stands at position `ends_B` of the prefix frame; in the
        suffix frame the last row stands at -1. The hidden state of row i predicts the token of row i + 1.
        Without a packing each request has one canvas.
        """
        self.prepare()
        rows = torch.arange(ids_BR.shape[1], device=ids_BR.device)[None]
        place, length = (rows, ids_BR.shape[1]) if packing is None else (packing.place, packing.rows)
        near = self.angles((ends_B[:, None] + place)[:, None, None])
        away = self.angles((place - length)[:, None, None])
        bias = None if packing is None else packing.bias(self.groups)
        return self.run(self.embed(ids_BR), PositionFrames(near, away, bias), before, after, adapted=True)[0]

    def run(
        self,
        x_BRC: Tensor,
        frames: PositionFrames,
        before: Sequence[KeyValueSegment],
        after: Sequence[KeyValueSegment],
        adapted: bool,
    ) -> tuple[Tensor, KeyValueBlock | None]:
        """Embedded rows through all layers and the last norm; rows of one frame only also leave their block."""
        x = x_BRC
        keys, values = [], []
        for number, layer in enumerate(self._layers()):
            sides = [side.at(number) for side in before], [side.at(number) for side in after]
            x, k, v = layer(x, frames, *sides, adapted)
            keys.append(k)
            values.append(v)
        block = KeyValueBlock(torch.stack(keys), torch.stack(values)) if frames.away is None else None
        return rms_norm(x, self.norm, self.config.rms_norm_eps), block

    def logits(self, hidden: Tensor) -> Tensor:
        """[...,C] to float32 [...,V]."""
        return F.linear(hidden, self.embedding if self.head is None else self.head).float()

    def writer_logits(self, hidden: Tensor) -> Tensor:
        """[...,C] to float32 [...,V+2]: the vocabulary, mask (never predicted, -inf) and end."""
        end = F.linear(hidden, self.markers[1:].to(hidden.dtype)).float()
        return torch.cat((self.logits(hidden), torch.full_like(end, float("-inf")), end), -1)

    def lengths(self, hidden: Tensor) -> Tensor:
        """Log-probabilities float32 [...,LENGTH_CLASSES] of the number of slots before the end marker.

        `hidden` [...,C] is row 0 of a fully masked canvas. Writers without a length head (`length` is None) have none.
        """
        assert self.length is not None, "this writer was trained without a length head"
        return F.linear(hidden, self.length.to(hidden.dtype)).float().log_softmax(-1)

    def kept(self, block: KeyValueBlock) -> KeyValueBlock:
        """The block as it takes least memory, to be rotated later."""
        return block

    def rotated(self, block: KeyValueBlock, start: int) -> KeyValueSegment:
        """The block's side with its first token at position start of a frame."""
        return self.placed(block, torch.arange(start, start + block.tokens, device=block.keys.device))

    def side_by_side(self, blocks: Sequence[KeyValueBlock], start: int) -> KeyValueSegment:
        """Blocks next to each other, the first token at position start of a frame."""
        return self.rotated(
            KeyValueBlock(*(torch.cat(each, 3) for each in zip(*((b.keys, b.values) for b in blocks), strict=True))),
            start,
        )

    def placed(self, block: KeyValueBlock, positions: Tensor) -> KeyValueSegment:
        """The block's side with its tokens at the positions [T] of a frame."""
        cos, sin = self.angles(positions)
        return KeyValueSegment(rotate(block.keys, cos, sin), block.values)

    def _layers(self) -> list[Layer]:
        return list(self.layers)  # type: ignore[arg-type]


def join(sides: list[KeyValueSegment]) -> KeyValueSegment:
    """Sides one after the other, none of them padded."""
    return KeyValueSegment(torch.cat([s.keys for s in sides], 3), torch.cat([s.values for s in sides], 3))
