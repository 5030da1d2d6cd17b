"""The block drafter: one layer that drafts the slots behind a known token, all in a single pass.

It starts as a copy of the reader's last layer and attends to that layer's cached keys and values, so it prefills
nothing. The row of the known token, the reader's own choice, drafts slot 0; masked rows behind it draft the others.
Every row begins as a linear map of what the reader has computed at the place before the known token (its last hidden
state, and the values of three layers) and of the known token's embedding. A Markov head adds what the token before a
slot says about it (DSpark, arXiv 2607.05147), so slots are drawn in sequence without a further pass.

Dimensions: P places, S slots, R rows, T tokens of a window, C width, F features, K draft vocabulary, V vocabulary.
"""

import copy
from dataclasses import dataclass

import torch
from mercury_kernels.ops import rms_norm
from torch import Tensor, nn
from torch.nn import functional as F

from mercury_engine.models.decoder import Decoder, Layer, PositionFrames, packing_bias
from mercury_engine.models.network import Packing
from mercury_engine.training.drafting.canvases import WindowReading

FIRST_SHARE = 0.02
"""Factor of the copied layer's output matrices at the start, where they would drown a new residual of size 1."""


@dataclass(frozen=True, slots=True)
class BlockShape:
    """The size of a block drafter."""

    slots: int = 4
    """Drafted tokens behind the known one."""
    seen: int = 256
    """Tokens of context that the layer attends to."""
    rank: int = 96
    """Rank of the Markov head."""


@dataclass(frozen=True, slots=True)
class BlockRows:
    """Rows of many blocks side by side, in order of block and slot."""

    places: Tensor
    """Where the token before each block's known token stands [P]."""
    known: Tensor
    """The known token of each block [P]."""
    block: Tensor
    """The number of each row's block [R]."""
    slot: Tensor
    """The slot that each row drafts [R]."""

    @classmethod
    def whole(cls, places: Tensor, known: Tensor, slots: int) -> "BlockRows":
        """All slots of every block."""
        block = torch.arange(len(places), device=places.device)
        slot = torch.arange(slots, device=places.device)
        return cls(places, known, block.repeat_interleave(slots), slot.repeat(len(places)))


class BlockDrafter(nn.Module):
    """The trained parts; the reader, which every call is given, stays frozen."""

    vocabulary: Tensor
    """Tokens [K] that it can draft, in ascending order."""

    def __init__(self, reader: Decoder, vocabulary: Tensor, shape: BlockShape) -> None:
        super().__init__()
        config = reader.config
        self.shape, self.eps = shape, config.rms_norm_eps
        self.featured = [config.num_hidden_layers * fifths // 5 for fifths in (2, 3, 4)]
        """Layers whose values are features."""
        width = config.hidden_size
        self.features_width = 2 * width + 3 * config.num_key_value_heads * config.head_dim
        self.scale = nn.Parameter(torch.ones(self.features_width))
        """Factors of the features."""
        self.fuse = nn.Parameter(torch.zeros(2, width, self.features_width))
        """Maps for known tokens and for masked slots."""
        self.places = nn.Parameter(torch.zeros(shape.slots, width))
        """What a row begins with, by slot."""
        last = reader.layers[-1]
        assert isinstance(last, Layer)
        self.layer = copy.deepcopy(last).float().requires_grad_(True)
        self.norm = nn.Parameter(reader.norm.detach().float().clone())
        self.before = nn.Parameter(torch.randn(config.vocab_size, shape.rank))
        self.after = nn.Parameter(torch.zeros(config.vocab_size, shape.rank))
        self.gain = nn.Parameter(torch.ones(shape.slots))
        """Factors of the Markov head's logits, by slot."""
        self.register_buffer("vocabulary", vocabulary, persistent=False)
        with torch.no_grad():
            self.layer.out.weight.mul_(FIRST_SHARE)
            self.layer.down.weight.mul_(FIRST_SHARE)

    def features(self, reader: Decoder, reading: WindowReading, places_P: Tensor, known_P: Tensor) -> Tensor:
        """[P,F], scaled."""
        values = (
            reading.segment.values[layer, 0][:, 1 + places_P] for layer in self.featured
        )  # behind the start token
        parts = [reading.hidden[places_P], *(each.transpose(0, 1).flatten(1) for each in values), reader.embed(known_P)]
        return torch.cat([part.float() for part in parts], 1) * self.scale

    def forward(self, reader: Decoder, reading: WindowReading, rows: BlockRows) -> Tensor:
        """Hidden states [R,C] that predict the rows' slots."""
        begun_2PC = torch.einsum("pf,kcf->kpc", self.features(reader, reading, rows.places, rows.known), self.fuse)
        x_RC = begun_2PC[(rows.slot > 0).long(), rows.block] + self.places[rows.slot]
        at_R = rows.places[rows.block]
        canvas, slot = rows.block[None], rows.slot[None]
        own = packing_bias(Packing(canvas, slot, torch.full_like(slot, self.shape.slots)), reader.groups, causal=True)
        frames = PositionFrames(reader.angles((at_R + 1 + rows.slot)[None, None, None]), None, own)
        x, _, _ = self.layer(x_RC[None], frames, [self._context(reader, reading, at_R)], [], False)
        return rms_norm(x[0], self.norm, self.eps)

    def _context(self, reader: Decoder, reading: WindowReading, at_R: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The reader's last layer's keys and values, with a bias that shows each row the tokens up to its place."""
        keys, values, _ = reading.segment.at(-1)
        token = torch.arange(-1, keys.shape[2] - 1, device=at_R.device)
        hidden_RT = (token > at_R[:, None]) | (token <= at_R[:, None] - self.shape.seen)
        bias = torch.zeros(hidden_RT.shape, device=at_R.device).masked_fill(hidden_RT, float("-inf"))
        return keys.float(), values.float(), bias.repeat(reader.groups, 1)[None, None]

    def logits(self, reader: Decoder, hidden_RC: Tensor, before_R: Tensor, slot_R: Tensor) -> Tensor:
        """Float32 [R,K] of the draft vocabulary; `before_R` are the tokens before the slots."""
        head = reader.embedding if reader.head is None else reader.head
        chosen = head[self.vocabulary]
        plain = reader.scaled(F.linear(hidden_RC.to(chosen.dtype), chosen).float())
        return plain + self.gain[slot_R, None] * F.linear(self.before[before_R], self.after[self.vocabulary])

    @torch.no_grad()
    def draft(self, reader: Decoder, reading: WindowReading, places_P: Tensor, known_P: Tensor) -> Tensor:
        """Tokens [P,S], each drawn greedily behind the one before."""
        rows = BlockRows.whole(places_P, known_P, self.shape.slots)
        hidden_PSC = self(reader, reading, rows).view(len(places_P), self.shape.slots, -1)
        tokens = [known_P]
        for slot in range(self.shape.slots):
            logits = self.logits(reader, hidden_PSC[:, slot], tokens[-1], torch.full_like(known_P, slot))
            tokens.append(self.vocabulary[logits.argmax(-1)])
        return torch.stack(tokens[1:], 1)
