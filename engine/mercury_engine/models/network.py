"""A network as the engine sees it: configuration, exchanged arrays and protocol.

`cpu.CpuNetwork` implements the protocol with the C kernels and NumPy, `torch_network.TorchNetwork` with torch. Tokens
and positions are NumPy arrays; hidden states, keys, values and log-probabilities stay where the network computes them
(`arrays.Array`) until the host needs a number.

Dimensions: B batch, T tokens, R rows, W wanted rows, C width, L layers, H key heads, G query heads per key head,
D head width, V vocabulary.

A causal model only reads. A masked model also denoises the slots of a canvas. The bundled one reads its context with
the causal decoder it was made from, and denoises with a low-rank adapter on every matrix and two more tokens: mask and
end.
"""

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

import numpy as np

from mercury_engine.models.arrays import Array, IdArray, namespace
from mercury_engine.models.row_answers import RowAnswers, RowQuestion

PART = 5_000_000_000
"""Multiplications between two checks of deadline and cancel flag: some 15 ms on two cores."""

CONTEXT_LENGTH = 8192
"""Longest text in tokens if a model's files do not say."""

Kind = Literal["causal", "masked"]
"""What a model was trained for: to predict the next token, or masked ones."""


@dataclass(frozen=True, slots=True)
class MaskedAttention:
    """What distinguishes a family of masked models without an adapter, whose rows see later ones."""

    family: str
    mask_id: int
    shifted: bool
    """Whether a row predicts the token of the next one, as in the causal model it was made from."""
    expand_id: int | None = None
    """The token that turns a slot into two."""
    delete_id: int | None = None
    """The token that takes a slot away."""
    block: int | None = None
    """Tokens of a block, whose rows see each other and all earlier blocks; None: all rows of a text see each other."""
    part: int | None = None
    """Tokens of a block that are unmasked before the next ones; None: all of the block."""
    threshold: float = 0.9
    """Probability that unmasks a slot of a block, as published with the model."""


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
    qk_norm: bool = False
    """Whether the queries and keys of every head pass a norm, as in Qwen3."""
    tie_word_embeddings: bool = True
    embedding_multiplier: float = 1.0
    attention_multiplier: float | None = None
    """Factor of attention scores; None is head_dim ** -0.5. This and its three neighbours are Granite's."""
    residual_multiplier: float = 1.0
    logits_scaling: float = 1.0
    """Logits are divided by it."""
    rope_factors: tuple[float, ...] = ()
    """Divisors of the rotary frequencies, one per pair of dimensions; empty for none."""
    max_position_embeddings: int = CONTEXT_LENGTH
    """Longest text that the model was trained for, in tokens."""
    name: str = "unnamed"
    kind: Kind = "causal"
    """Which decoder runs the model: causal models decode left to right, masked ones by diffusion."""
    adapter_rank: int = 0
    """Rank of the adapter with which a masked model denoises; 0 for one that needs none, and for a causal model."""
    masked_attention: MaskedAttention | None = None
    """None for causal models, and for masked ones that read their context causally."""

    @property
    def score_factor(self) -> float:
        return self.head_dim**-0.5 if self.attention_multiplier is None else self.attention_multiplier

    @property
    def layer_parameters(self) -> int:
        """Number of weights in the matrices of a layer."""
        queries, keys = (heads * self.head_dim for heads in (self.num_attention_heads, self.num_key_value_heads))
        return self.hidden_size * (2 * queries + 2 * keys + 3 * self.intermediate_size)

    def layers_at_once(self, rows: int) -> int:
        """Layers that a pass over so many rows computes between two looks at deadline and cancel flag."""
        return max(1, PART // (self.layer_parameters * max(1, rows)))

    @property
    def mask_id(self) -> int:
        """Input row of a masked slot; never an output."""
        return self.vocab_size if self.masked_attention is None else self.masked_attention.mask_id

    @property
    def end_id(self) -> int:
        """The end marker: the slot and all to its right lie after the gap's text."""
        return self.vocab_size + 1


@dataclass(slots=True)
class KeyValueBlock:
    """Keys before rotation and values [L,B,H,T,D] of one causal run, or in the form `Network.kept` gives them."""

    keys: Array
    values: Array

    @property
    def tokens(self) -> int:
        return int(self.keys.shape[3])


NO_BLOCK = KeyValueBlock(*np.empty((2, 0, 1, 0, 0, 0), np.float32))


@dataclass(slots=True, eq=False)
class KeyValueSegment:
    """Rotated keys and values [L,B,H,T,D] on one side of the canvas."""

    keys: Array
    values: Array

    @property
    def tokens(self) -> int:
        return int(self.values.shape[3])


Side = TypeVar("Side", KeyValueBlock, KeyValueSegment)


@dataclass(frozen=True, slots=True)
class ForwardRequest:
    """One request's part of a forward pass: tokens [T] to read, or the rows of canvases to denoise."""

    ids_T: IdArray
    past: Sequence[KeyValueSegment] = ()
    start: int = 0
    runs: Sequence[int] = ()
    """Rows of each of several runs or canvases side by side, which do not see each other and all begin at `start`."""
    wanted: Sequence[int] = ()
    """Rows whose log-probabilities are returned, or what is asked of them."""
    question: RowQuestion | None = None
    """What is asked of the wanted rows; None for their log-probabilities."""
    adapter: str = ""
    """The adapter that changes the rows; one that the network lacks changes nothing."""
    block: int | None = 1
    """Rows see the later ones of their block of so many tokens, too; None: all rows see each other.

    Blocks count from position 0, and `start` is the first of one. With None `past` may hold what stands after the rows.
    """
    known_WC: Array | None = None
    """Hidden states of wanted rows before these, from an earlier pass. With them there may be no tokens to read."""
    after: Sequence[KeyValueSegment] | None = None
    """The text after the rows of canvases, whose last row has position -1 in its frame; None for rows that are read.

    Row 0 of a canvas is the last prefix token. The hidden state of row i predicts the token of row i + 1.
    """

    @property
    def rows(self) -> int:
        return len(self.ids_T)

    @property
    def lengths(self) -> Sequence[int]:
        """Rows of each run."""
        return self.runs or (self.rows,)

    @property
    def place_T(self) -> IdArray:
        """The place of each row in its run."""
        return np.concatenate([*map(np.arange, self.lengths)])

    @property
    def is_canvas(self) -> bool:
        return self.after is not None


class Network(Protocol):
    """Reads text, and for a masked model denoises canvases in both directions."""

    config: ModelConfig
    backend: str
    """Name of the implementation, for people to read."""
    device: str
    """Where it computes: "cpu", or "cuda" with a number."""

    @property
    def adapters(self) -> Collection[str]:
        """Names of the adapters that forwards may ask for."""

    def rest(self) -> None:
        """Return the device's freed memory to the system."""

    def read_together(self, forwards: Sequence[ForwardRequest]) -> list[tuple[Array, KeyValueBlock]]:
        """For each forward its hidden states [T,C], and the block of its tokens' keys and values, none for a canvas.

        The forwards run in one pass where that is cheaper; no result depends on the others.
        """

    def read_in_parts(self, forward: ForwardRequest) -> Generator[None, None, tuple[Array, KeyValueBlock]]:
        """`read_together` of one forward, paused between layers where it takes long; other passes may run meanwhile."""

    def log_probabilities(self, hidden_RC: Array) -> Array:
        """Float32 [R,V] of the next tokens."""

    def answers(self, hidden_WC: Array, questions: Sequence[RowQuestion], is_canvas: bool = False) -> list[RowAnswers]:
        """What is asked of consecutive rows about the next tokens; a canvas's vocabulary ends with mask and end."""

    def told_ahead(self, forward: ForwardRequest) -> RowAnswers | None:
        """What is asked in a pass of its own, while the next one begins (`Reveal`); None where nothing runs ahead."""

    def kept(self, block: KeyValueBlock) -> KeyValueBlock:
        """The block in its smallest form, to be rotated later; shares no memory with the block."""

    def rotated(self, block: KeyValueBlock, start: int) -> KeyValueSegment:
        """The block's segment with its first token at position start of a frame."""

    def side_by_side(self, blocks: Sequence[KeyValueBlock], start: int) -> KeyValueSegment:
        """One segment of adjacent blocks, with the first token at position start of a frame."""


def part_of(side: Side, first: int, end: int) -> Side:
    """The tokens of a block or segment from `first` up to `end`."""
    kind = KeyValueBlock if isinstance(side, KeyValueBlock) else KeyValueSegment
    return kind(side.keys[:, :, :, first:end], side.values[:, :, :, first:end])


def join(sides: list[KeyValueSegment]) -> KeyValueSegment:
    """One segment of several adjacent ones."""
    concatenate = namespace(sides[0].keys).concatenate
    return KeyValueSegment(concatenate([s.keys for s in sides], 3), concatenate([s.values for s in sides], 3))
