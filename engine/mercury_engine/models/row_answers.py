"""A decoder's question to a pass and its answer, which never holds the logits of a whole vocabulary.

Every device answers with the same arrays: `Layers.answers` in C, `device.answers` in torch.

Dimensions: W wanted rows, S slots that rows tell of, V vocabulary, N ban lists, K = 64 candidates, A tokens asked for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercury_engine.models.arrays import FloatArray, IdArray, MaskArray, log_softmax

CANDIDATES = 64

WORD = 32
"""Tokens in a word of a ban list."""

WordArray = NDArray[np.uint32]
SmallIdArray = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Limits:
    """Which masks a denoise step reveals: those that any of these allows, by falling confidence."""

    count: int = 0
    """So many."""
    share: float = 0.0
    """So large a part of the masks, rounded down, beside `count`."""
    least: float = math.inf
    """Those at least so sure."""
    bound: float = -math.inf
    """Where the confidence is a negative entropy: those before which the sum of entropies is at most so many nats."""
    again: int = 0
    """So many of the slots that are least sure are then masked, revealed or not."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The special tokens of a model; None for those it lacks."""

    mask: int
    end: int | None = None
    """The text ends before this slot, so that all slots after it are ends, too."""
    delete: int | None = None
    """Removes its slot."""
    expand: int | None = None
    """Turns its slot into two masks."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A token for every slot."""

    token_S: IdArray
    confidence_S: FloatArray
    probability_S: FloatArray
    """The model's probability of the token, whatever distribution it was drawn from."""

    @classmethod
    def ranked(cls, told: "RowAnswers", rank: int) -> "Drawn":
        """The candidate of this rank for each slot; 0 is the likeliest."""
        probability_S = np.exp(told.candidate_logp_WK[:, rank])
        return cls(told.candidate_WK[:, rank].astype(np.int64), probability_S, probability_S)


@dataclass(frozen=True, slots=True)
class Choice:
    """How a slot's token is drawn and its confidence computed; temperature 0 takes the likeliest token."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    """Number of tokens that are kept; 0 for all candidates."""
    confidence: Literal["probability", "entropy"] = "probability"

    @property
    def draws(self) -> bool:
        """Whether it needs candidates."""
        return self.temperature > 0 or self.top_p < 1 or self.top_k > 0

    def draw(self, told: "RowAnswers", random: np.random.Generator) -> Drawn:
        """A token for each slot, drawn from its candidates.

        Temperature, then the smallest set of tokens with at least `top_p`, then the `top_k` largest; the confidence is
        that of the cut distribution. Source: `sample_tokens` of Dream, DreamOn and Open-dCoder.
        """
        if not self.draws:
            probability_S = np.exp(told.logp_W)
            confidence_S = -told.entropy_W if self.confidence == "entropy" else probability_S
            return Drawn(told.token_W.astype(np.int64), confidence_S, probability_S)
        logp_SK = told.candidate_logp_WK.astype(np.float64)
        cut_SK = self._cut(logp_SK / self.temperature if self.temperature > 0 else logp_SK)
        power_SK = np.exp(log_softmax(cut_SK))
        place_S = power_SK.argmax(-1)
        if self.temperature > 0:
            order_SK = told.candidate_WK.argsort(-1, kind="stable")  # by number, so that no draw depends on their rank
            sums_SK = np.take_along_axis(power_SK, order_SK, -1).cumsum(-1)
            drawn_S = (sums_SK > random.random((len(place_S), 1))).argmax(-1)
            place_S = np.take_along_axis(order_SK, drawn_S[:, None], -1)[:, 0]
        confidence_S = _at(power_SK, place_S)
        if self.confidence == "entropy":
            confidence_S = (power_SK * np.log(np.maximum(power_SK, 1e-10))).sum(-1)
        return Drawn(_at(told.candidate_WK, place_S).astype(np.int64), confidence_S, np.exp(_at(logp_SK, place_S)))

    def _cut(self, logits_SK: NDArray[Any]) -> NDArray[Any]:
        """The logits, which fall, with -inf for those that are cut."""
        kept_SK = np.ones(logits_SK.shape, np.bool_)
        if self.top_p < 1:
            power_SK = np.exp(log_softmax(logits_SK))
            kept_SK = power_SK.cumsum(-1) - power_SK <= self.top_p
        if self.top_k:
            kept_SK[:, self.top_k :] = False
        return np.where(kept_SK, logits_SK, -np.inf)


@dataclass(frozen=True, slots=True)
class Reveal:
    """How a GPU goes on while the host decides: it reveals slots and begins the next pass, which the host may drop."""

    shift: int
    """A slot stands so many rows after the row that tells of it."""
    tokens: Tokens
    choice: Choice
    limits: tuple[Limits, ...]
    """Of this step and of the next one; none if there is no next one."""
    random: np.random.Generator | None
    """What the host draws this step's tokens with, and then the next step's; None if it draws none."""


@dataclass(frozen=True, slots=True)
class RowQuestion:
    """What is asked of wanted rows."""

    list_W: SmallIdArray
    """int32: the ban list of each row, or -1 for none."""
    banned_N: WordArray
    """uint32 [N, ceil(V / 32)]: bit i % 32 of word i // 32 bans token i (`bits_of`)."""
    draws: bool = False
    """Whether candidates are wanted."""
    asked_A: SmallIdArray = field(default_factory=lambda: np.empty(0, np.int32))
    """int32: tokens whose logits are wanted of every row."""
    open_W: MaskArray | None = None
    """bool: rows whose answers matter, None for all; of the others a CPU computes nothing."""
    reveal: Reveal | None = None
    """Where the rows tell of slots and nothing else of the pass is needed; None elsewhere."""

    @classmethod
    def of(
        cls,
        hidden: Sequence[MaskArray | None],
        vocabulary: int,
        draws: bool = False,
        asked: Sequence[int] | IdArray = (),
    ) -> "RowQuestion":
        """Of rows that may not get the hidden tokens, bool [V] or more; rows with the same array share a list."""
        lists, bits = {id(None): -1}, list[WordArray]()
        for each in hidden:
            if each is not None and id(each) not in lists:
                lists[id(each)] = len(bits)
                bits.append(bits_of(each[:vocabulary]))
        banned_N = np.stack(bits) if bits else np.empty((0, -(-vocabulary // WORD)), np.uint32)
        rows = np.array([lists[id(each)] for each in hidden], np.int32)
        return cls(rows, banned_N, draws, np.array(asked, np.int32))

    @property
    def rows(self) -> int:
        return len(self.list_W)


@dataclass(frozen=True, slots=True)
class RowAnswers:
    """The answers about W rows, on the host. A row without an allowed token, or with NaN, has probability NaN."""

    token_W: SmallIdArray
    """The likeliest allowed token; of equal ones the first."""
    logit_W: FloatArray
    """Its logit."""
    log_sum_W: FloatArray
    """Logarithm of the sum of exp(logit) over the allowed tokens."""
    whole_W: FloatArray
    """The same over all tokens."""
    entropy_W: FloatArray
    """Nats, of the allowed tokens' distribution."""
    candidate_WK: SmallIdArray
    """The likeliest allowed tokens, by falling logit, equal ones by number; [W,0] unless the question draws."""
    candidate_logit_WK: FloatArray
    """Their logits; -inf where fewer are allowed."""
    asked_WA: FloatArray
    """Logits of the tokens asked for, banned or not."""

    @property
    def logp_W(self) -> FloatArray:
        """Log-probability of the likeliest token among the allowed ones."""
        with np.errstate(invalid="ignore"):
            return self.logit_W - self.log_sum_W

    @property
    def candidate_logp_WK(self) -> FloatArray:
        """Log-probabilities of the candidates among the allowed tokens."""
        with np.errstate(invalid="ignore"):
            return self.candidate_logit_WK - self.log_sum_W[:, None]

    def part(self, rows: slice) -> "RowAnswers":
        """Those of some rows."""
        return RowAnswers(*(getattr(self, each.name)[rows] for each in fields(self)))

    def spread(self, open_W: MaskArray) -> "RowAnswers":
        """These as the answers of the open rows, among zeros for the others."""

        def among(told: NDArray[Any]) -> NDArray[Any]:
            whole = np.zeros((len(open_W), *told.shape[1:]), told.dtype)
            whole[open_W] = told
            return whole

        return self if open_W.all() else RowAnswers(*(among(getattr(self, each.name)) for each in fields(self)))


_IDS, _FIGURES = np.empty(0, np.int32), np.empty(0, np.float32)
NOTHING = RowAnswers(_IDS, _FIGURES, _FIGURES, _FIGURES, _FIGURES, _IDS, _FIGURES, _FIGURES)
"""The answers about no rows."""


def bits_of(hidden_V: MaskArray) -> WordArray:
    """uint32 [ceil(V / 32)]: the ban list of tokens that are hidden."""
    padded = np.zeros(-(-len(hidden_V) // WORD) * WORD, np.bool_)
    padded[: len(hidden_V)] = hidden_V
    return np.packbits(padded, bitorder="little").view(np.uint32)


def _at(values_SK: NDArray[Any], place_S: IdArray) -> NDArray[Any]:
    """[S]: the value at a place of each row."""
    return np.take_along_axis(values_SK, place_S[:, None], -1)[:, 0]
