"""What the engine needs of a network: its configuration, the tensors it exchanges and the protocol it implements.

`torch_network.TorchNetwork` implements the protocol with torch, `cpu.CpuNetwork` with the C kernels.

Dimensions: B batch, T context tokens, R canvas rows (the last prefix token, then the slots), C width,
L layers, H key heads, G query heads per key head, D head width, V vocabulary.

A network is a causal reader of context blocks and a bidirectional writer of the canvas. Both roles run the same
pretrained decoder (Llama and Qwen2 families). The writer adds a low-rank adapter to every matrix and two rows of its
own to the vocabulary: mask and end.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from mercury_kernels.ops import Segment, rotary_angles
from torch import Tensor
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
    """Keys before rotation and values [L,B,H,T,D] of one causal run, or in the form `Network.kept` gives them."""

    keys: Tensor
    values: Tensor

    @property
    def tokens(self) -> int:
        return self.keys.shape[3]


@dataclass(slots=True)
class KeyValueSegment:
    """Rotated keys and values [L,B,H,T,D] on one side of the canvas; bias [B,1,1,T] hides padding."""

    keys: Tensor
    values: Tensor
    bias: Tensor | None = None

    def at(self, layer: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """One layer's keys [B,H,T,D] and values, and the bias."""
        return self.keys[layer], self.values[layer], self.bias


@dataclass(frozen=True, slots=True)
class Packing:
    """Several canvases of one request side by side; for every row [B,R] its canvas, its place there, the canvas's rows.

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
    """Rows whose logits are returned."""

    @property
    def rows(self) -> int:
        return self.ids_BT.shape[1]


Angles = tuple[Tensor, Tensor]
"""Cosines and sines [B,1,1,R,D]."""


Attention = Callable[[list[Segment], list[Segment]], Tensor]
"""Attention to the segments toward the prefix, with the rows' own one last, and to those toward the suffix."""


@dataclass(frozen=True, slots=True)
class PositionFrames:
    """Positions of rows toward the prefix and each other (`near`) and toward the suffix (`away`).

    The bias [B,1,G*R,R] applies among the rows. `attend` replaces the stock attention where the rows of many requests
    are packed into one.
    """

    near: Angles
    away: Angles | None
    bias: Tensor | None
    attend: Attention | None = None


class Network(Protocol):
    """A reader, and with an adapter a writer. `read` is causal and frozen, `write` bidirectional and adapted."""

    config: ModelConfig
    backend: str
    """Name of the implementation, for people to read."""

    @property
    def device(self) -> torch.device:
        """The device of token ids and positions."""

    def prepare(self) -> None:
        """Do now what would delay the first `write`."""

    def read(
        self, ids_BT: Tensor, past: Sequence[KeyValueSegment] = (), start: int = 0, packing: Packing | None = None
    ) -> tuple[Tensor, KeyValueBlock]:
        """Causal hidden states [B,T,C] behind `past`, and the block of their keys and values.

        Positions count from start. With a packing the rows are several runs that do not see each other and all begin
        at position start.
        """

    def read_together(self, forwards: Sequence[ForwardRequest]) -> list[tuple[Tensor, KeyValueBlock]]:
        """What `read` returns for each forward, in one pass where that is cheaper."""

    def write(
        self,
        ids_BR: Tensor,
        before: Sequence[KeyValueSegment],
        after: Sequence[KeyValueSegment],
        ends_B: Tensor,
        packing: Packing | None = None,
    ) -> Tensor:
        """Hidden states [B,R,C] of canvas rows that see each other and the sides before and after the gap.

        Row 0 of a canvas is the last prefix token and has position `ends_B` of the prefix frame; in the suffix frame
        the last row has position -1. The hidden state of row i predicts the token of row i + 1.
        Without a packing each request has one canvas.
        """

    def logits(self, hidden: Tensor) -> Tensor:
        """[...,C] to float32 [...,V]."""

    def writer_logits(self, hidden: Tensor) -> Tensor:
        """[...,C] to float32 [...,V+2]: the vocabulary, mask (never predicted, -inf) and end."""

    def kept(self, block: KeyValueBlock) -> KeyValueBlock:
        """The block in its smallest form, to be rotated later."""

    def rotated(self, block: KeyValueBlock, start: int) -> KeyValueSegment:
        """The block's segment with its first token at position start of a frame."""

    def side_by_side(self, blocks: Sequence[KeyValueBlock], start: int) -> KeyValueSegment:
        """One segment of adjacent blocks, with the first token at position start of a frame."""


def packed(canvases: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Packing]:
    """Ids [1,R] of several canvases of one request side by side, and their packing."""
    rows = [(i, n, place, len(ids)) for n, ids in enumerate(canvases) for place, i in enumerate(ids)]
    ids, canvas, place, length = torch.tensor(rows, device=device)[None].unbind(-1)
    return ids, Packing(canvas, place, length)


def join(sides: list[KeyValueSegment]) -> KeyValueSegment:
    """One segment of several adjacent ones, none of them padded."""
    return KeyValueSegment(torch.cat([s.keys for s in sides], 3), torch.cat([s.values for s in sides], 3))


def embed(ids: Tensor, embedding: Tensor, markers: Tensor) -> Tensor:
    """ids [...] including mask and end to [...,C]; the embedding is [V,C], the markers are [2,C]."""
    size = len(embedding)
    known = F.embedding(ids.clamp(max=size - 1), embedding)
    marker = F.embedding((ids - size).clamp(min=0), markers).to(known.dtype)
    return torch.where((ids >= size)[..., None], marker, known)


def position_angles(config: ModelConfig, positions: Tensor) -> Angles:
    """Rotary angles of positions [...,R]."""
    return rotary_angles(positions, config.head_dim, config.rope_theta)


def canvas_frames(
    angles: Callable[[Tensor], Angles], ids_BR: Tensor, ends_B: Tensor, packing: Packing | None, groups: int
) -> PositionFrames:
    """The frames of canvas rows, see `Network.write`; `angles` maps positions to rotary angles."""
    rows = torch.arange(ids_BR.shape[1], device=ids_BR.device)[None]
    place, length = (rows, ids_BR.shape[1]) if packing is None else (packing.place, packing.rows)
    near = angles((ends_B[:, None] + place)[:, None, None])
    away = angles((place - length)[:, None, None])
    return PositionFrames(near, away, None if packing is None else packing.bias(groups))


def with_marker_logits(logits: Tensor, hidden: Tensor, markers: Tensor) -> Tensor:
    """Logits [...,V] with those of mask (-inf) and end behind them, see `Network.writer_logits`."""
    end = F.linear(hidden, markers[1:].to(hidden.dtype)).float()
    return torch.cat((logits, torch.full_like(end, float("-inf")), end), -1)


def length_log_probabilities(hidden: Tensor, length: Tensor | None) -> Tensor:
    """Log-probabilities float32 [...,LENGTH_CLASSES] of the number of slots before the end marker.

    `hidden` [...,C] is row 0 of a fully masked canvas; `length` is the writer's length head, if it has one.
    """
    assert length is not None, "this writer was trained without a length head"
    return F.linear(hidden, length.to(hidden.dtype)).float().log_softmax(-1)
