"""Rules of masked diffusion models: which slots a denoise step reveals, masks again, adds or takes away.

A rule is a value with one method, `step`, a pure function: it gets the slots of the gap and what a pass told of them,
and returns the slots for the next. Ties go to the leftmost slot.

Dimensions: S slots, K candidates, the likeliest tokens of a slot.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from mercury_engine.api import SlotView
from mercury_engine.models.arrays import FloatArray, IdArray, MaskArray, log_softmax
from mercury_engine.models.row_answers import RowAnswers

_NEVER_USED = np.random.default_rng(0)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids with a meaning in the model's vocabulary."""

    mask: int
    end: int | None = None
    """What DreamOn writes where a slot is to be deleted."""
    expand: int | None = None
    """What DreamOn writes where one slot is to become two."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A token for every slot."""

    token_S: IdArray
    confidence_S: FloatArray
    probability_S: FloatArray
    """What the model gives the token, whatever it was drawn from."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How a slot's token is drawn and its confidence counted; temperature 0 takes the likeliest."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    """Tokens that are kept, 0 for all candidates."""
    confidence: Literal["probability", "entropy"] = "probability"

    @property
    def draws(self) -> bool:
        """Whether it needs candidates."""
        return self.temperature > 0 or self.top_p < 1 or self.top_k > 0

    def draw(self, told: RowAnswers, random: np.random.Generator) -> Drawn:
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
        """The logits, by falling value, with -inf for those that are left out."""
        kept_SK = np.ones(logits_SK.shape, np.bool_)
        if self.top_p < 1:
            power_SK = np.exp(log_softmax(logits_SK))
            kept_SK = power_SK.cumsum(-1) - power_SK <= self.top_p
        if self.top_k:
            kept_SK[:, self.top_k :] = False
        return np.where(kept_SK, logits_SK, -np.inf)


@dataclass(frozen=True, slots=True)
class Slots:
    """The slots of a gap, from the left: their tokens, and the probability of each when it was revealed (masks: 0)."""

    ids: IdArray
    probability: FloatArray

    @classmethod
    def masked(cls, count: int, tokens: "Tokens") -> "Slots":
        """So many masks."""
        return cls(np.full(count, tokens.mask, np.int64), np.zeros(count, np.float32))

    def is_mask(self, tokens: "Tokens") -> MaskArray:
        """bool [S]: the slots that hold no token."""
        return self.ids == tokens.mask

    def revealed(self, chosen: IdArray | MaskArray, drawn: Drawn) -> "Slots":
        """The slots with drawn tokens in the chosen ones."""
        ids_S, probability_S = self.ids.copy(), self.probability.copy()
        ids_S[chosen], probability_S[chosen] = drawn.token_S[chosen], drawn.probability_S[chosen]
        return Slots(ids_S, probability_S)

    def all_revealed(self, told: RowAnswers, tokens: Tokens) -> "Slots":
        """The slots with the likeliest token in every mask."""
        return self.revealed(self.is_mask(tokens), Choice().draw(told, _NEVER_USED))

    def masked_again(self, chosen: IdArray, tokens: "Tokens") -> "Slots":
        """The slots with masks in the chosen ones."""
        ids_S, probability_S = self.ids.copy(), self.probability.copy()
        ids_S[chosen], probability_S[chosen] = tokens.mask, 0.0
        return Slots(ids_S, probability_S)

    def views(self, texts: Sequence[str], tokens: "Tokens") -> list[SlotView]:
        """The slots for displaying the denoising."""
        return [
            SlotView("", "mask", 0.0) if token == tokens.mask else SlotView(texts[token], "committed", sure)
            for token, sure in zip(self.ids.tolist(), self.probability.tolist(), strict=True)
        ]


class Rule(Protocol):
    """One step of denoising."""

    @property
    def choice(self) -> Choice:
        """How it draws tokens."""

    def step(self, slots: Slots, told: RowAnswers, tokens: Tokens, number: int, random: np.random.Generator) -> Slots:
        """The slots after step `number`, counted from 0; their number may differ."""


@dataclass(frozen=True, slots=True)
class EntropyBound:
    """Reveal by rising entropy while the sum less the largest is at most `bound` nats. arXiv 2505.24857."""

    bound: float = 0.1
    choice: Choice = Choice()

    def step(self, slots: Slots, told: RowAnswers, tokens: Tokens, number: int, random: np.random.Generator) -> Slots:
        masked_S = slots.is_mask(tokens)
        drawn = self.choice.draw(told, random)
        return slots.revealed(choose_by_entropy(told.entropy_W, masked_S, self.bound), drawn)


@dataclass(frozen=True, slots=True)
class ConfidenceThreshold:
    """Reveal every slot at least as sure as `threshold`, and always the surest one."""

    threshold: float = 0.9
    choice: Choice = Choice()

    def step(self, slots: Slots, told: RowAnswers, tokens: Tokens, number: int, random: np.random.Generator) -> Slots:
        drawn = self.choice.draw(told, random)
        return slots.revealed(choose_by_confidence(drawn.confidence_S, slots.is_mask(tokens), self.threshold), drawn)


@dataclass(frozen=True, slots=True)
class LinearSchedule:
    """Reveal a fixed share of the masks in each step, the surest first: the reference sampler of Dream and DiffuCoder.

    In step i of N, with t falling linearly from 1 to `eps`, floor(masks * (1 - t[i+1] / t[i])) slots are revealed; the
    last step reveals all. With few masks some steps reveal nothing.
    """

    steps: int = 64
    choice: Choice = Choice(confidence="entropy")
    eps: float = 1e-3

    def step(self, slots: Slots, told: RowAnswers, tokens: Tokens, number: int, random: np.random.Generator) -> Slots:
        masked_S = slots.is_mask(tokens)
        drawn = self.choice.draw(told, random)
        t = np.linspace(1, self.eps, self.steps + 1)
        masks = int(masked_S.sum())
        quota = masks if number >= self.steps - 1 else int(masks * (1 - t[number + 1] / t[number]))
        return slots.revealed(best(np.where(masked_S, drawn.confidence_S, -np.inf), quota), drawn)


@dataclass(frozen=True, slots=True)
class PathPlanning:
    """Reveal all masks, then mask again the slots that are least sure: Open-dCoder's sampler, "p2". arXiv 2502.03540.

    After step i of N, floor(S * (1 - (i + 1) / N)) slots are masks. A slot's confidence is that of the token drawn
    there now, not of the one it holds; so tokens that were revealed earlier may be masked again.
    """

    steps: int = 64
    choice: Choice = Choice(temperature=0.6, top_p=0.95)

    def step(self, slots: Slots, told: RowAnswers, tokens: Tokens, number: int, random: np.random.Generator) -> Slots:
        drawn = self.choice.draw(told, random)
        left = max(0, int(len(slots.ids) * (1 - (number + 1) / self.steps)))
        again = np.argsort(drawn.confidence_S, kind="stable")[:left]
        return slots.revealed(slots.is_mask(tokens), drawn).masked_again(again, tokens)


@dataclass(frozen=True, slots=True)
class ExpandAndDelete:
    """Reveal one slot a step; a slot may become two masks or vanish, so the model finds the length: DreamOn's sampler.

    After the first "delete" all slots revealed in this step are deleted, too. arXiv 2602.01326.
    """

    choice: Choice = Choice(temperature=0.2, top_p=0.9, confidence="entropy")

    def step(self, slots: Slots, told: RowAnswers, tokens: Tokens, number: int, random: np.random.Generator) -> Slots:
        assert tokens.end is not None and tokens.expand is not None, "a model without expand and delete"
        masked_S = slots.is_mask(tokens)
        drawn = self.choice.draw(told, random)
        slots = slots.revealed(best(np.where(masked_S, drawn.confidence_S, -np.inf), 1), drawn)
        ends = np.flatnonzero(slots.ids == tokens.end)
        first = ends[0] if len(ends) else len(slots.ids)
        return _edited(slots, masked_S & (np.arange(len(slots.ids)) >= first), tokens)


def best(confidence_S: FloatArray, count: int) -> IdArray:
    """The `count` slots of the highest confidence."""
    return np.argsort(-confidence_S, kind="stable")[:count]


def _edited(slots: Slots, deleted_S: MaskArray, tokens: Tokens) -> Slots:
    """The slots without the deleted ones, and with two masks for each "expand"."""
    expands_S = ~deleted_S & (slots.ids == tokens.expand)
    counts_S = np.where(deleted_S, 0, np.where(expands_S, 2, 1))
    edited = slots.masked_again(np.flatnonzero(expands_S), tokens)
    return Slots(np.repeat(edited.ids, counts_S), np.repeat(edited.probability, counts_S))


def choose_by_entropy(entropy_S: FloatArray, masked_S: MaskArray, bound: float) -> MaskArray:
    """Masked slots to commit: rising entropy while sum - max <= bound (nats); at least one. arXiv 2505.24857."""
    entropy_S = np.where(masked_S, entropy_S, np.inf)
    order_S = np.argsort(entropy_S, kind="stable")
    before_S = np.roll(np.cumsum(entropy_S[order_S]), 1)  # sum - max of a rising run: the sum before its last slot
    before_S[0] = 0.0
    chosen_S = np.zeros(masked_S.shape, np.bool_)
    chosen_S[order_S[before_S <= bound]] = True
    return chosen_S & masked_S


def choose_by_confidence(confidence_S: FloatArray, masked_S: MaskArray, threshold: float) -> MaskArray:
    """Masked slots at least this confident, and always the most confident one. arXiv 2505.22618."""
    confidence_S = np.where(masked_S, confidence_S, -1.0)
    chosen_S = confidence_S >= threshold
    chosen_S[confidence_S.argmax()] = True
    return chosen_S & masked_S


def _at(values_SK: NDArray[Any], place_S: IdArray) -> NDArray[Any]:
    """[S]: the value at a place of each row."""
    return np.take_along_axis(values_SK, place_S[:, None], -1)[:, 0]
