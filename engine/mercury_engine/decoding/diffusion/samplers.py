"""Samplers of masked diffusion models: which slots a denoise step reveals, masks again, adds or takes away.

A sampler is a value with one method, `step`: it gets the slots of the gap and the logits of one forward pass, and
returns the slots for the next. Ties go to the leftmost slot.

Dimensions: S slots, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from mercury_engine.api import SlotView
from mercury_engine.decoding.diffusion.unmasking import choose_by_confidence, choose_by_entropy, entropy
from mercury_engine.models.arrays import FloatArray, IdArray, MaskArray, log_softmax

FORBIDDEN = 1e9
"""What is taken from a logit that must not be chosen; finite, so that a row of nothing else still has a softmax."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids with a meaning in the model's vocabulary."""

    mask: int
    end: int | None = None
    """What DreamOn writes where a slot is to be deleted."""
    expand: int | None = None
    """What DreamOn writes where one slot is to become two."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How a slot's token is drawn and its confidence counted; temperature 0 takes the likeliest."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    """Tokens that are kept, 0 for all."""
    confidence: Literal["probability", "entropy"] = "probability"

    def draw(self, logits_SV: FloatArray, random: np.random.Generator) -> tuple[IdArray, FloatArray]:
        """A token [S] and a confidence [S] for each row of logits.

        Temperature, then the smallest set of tokens with at least `top_p`, then the `top_k` largest; the confidence is
        that of the cut distribution. Source: `sample_tokens` of Dream, DreamOn and Open-dCoder.
        """
        logits_SV = logits_SV.astype(np.float64)
        if self.temperature > 0:
            logits_SV = logits_SV / self.temperature
        probability_SV = _softmax(self._cut(logits_SV))
        token_S = probability_SV.argmax(-1)
        if self.temperature > 0:
            token_S = (probability_SV.cumsum(-1) > random.random((len(token_S), 1))).argmax(-1)
        return token_S, self._confidence(probability_SV, token_S)

    def _cut(self, logits_SV: FloatArray) -> FloatArray:
        if self.top_p >= 1 and not self.top_k:
            return logits_SV
        order_SV = np.argsort(-logits_SV, axis=-1, kind="stable")
        kept_SV = np.ones(logits_SV.shape, np.bool_)
        if self.top_p < 1:
            sorted_SV = np.take_along_axis(_softmax(logits_SV), order_SV, -1)
            before_SV = sorted_SV.cumsum(-1) - sorted_SV
            np.put_along_axis(kept_SV, order_SV, before_SV <= self.top_p, -1)
        if self.top_k:
            np.put_along_axis(kept_SV, order_SV[:, self.top_k :], False, -1)
        return np.where(kept_SV, logits_SV, -np.inf)

    def _confidence(self, probability_SV: FloatArray, token_S: IdArray) -> FloatArray:
        if self.confidence == "entropy":
            return (probability_SV * np.log(np.maximum(probability_SV, 1e-10))).sum(-1)
        return np.take_along_axis(probability_SV, token_S[:, None], -1)[:, 0]


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

    def revealed(self, chosen: IdArray | MaskArray, token_S: IdArray, logits_SV: FloatArray) -> "Slots":
        """The slots with tokens in the chosen ones, and the probability that the model gives them."""
        ids_S, probability_S = self.ids.copy(), self.probability.copy()
        ids_S[chosen] = token_S[chosen]
        drawn_S = np.take_along_axis(_softmax(logits_SV.astype(np.float64)), token_S[:, None], -1)[:, 0]
        probability_S[chosen] = drawn_S[chosen]
        return Slots(ids_S, probability_S)

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


class Sampler(Protocol):
    """One step of denoising."""

    def step(
        self, slots: Slots, logits_SV: FloatArray, tokens: Tokens, number: int, random: np.random.Generator
    ) -> Slots:
        """The slots after step `number`, counted from 0; their number may differ."""


@dataclass(frozen=True, slots=True)
class EntropyBound:
    """Reveal by rising entropy while the sum less the largest is at most `bound` nats. arXiv 2505.24857."""

    bound: float = 0.1
    choice: Choice = Choice()

    def step(
        self, slots: Slots, logits_SV: FloatArray, tokens: Tokens, number: int, random: np.random.Generator
    ) -> Slots:
        masked_S = slots.is_mask(tokens)
        token_S, _ = self.choice.draw(logits_SV, random)
        entropy_S = entropy(log_softmax(logits_SV.astype(np.float64)))
        return slots.revealed(choose_by_entropy(entropy_S, masked_S, self.bound), token_S, logits_SV)


@dataclass(frozen=True, slots=True)
class ConfidenceThreshold:
    """Reveal every slot at least as sure as `threshold`, and always the surest one."""

    threshold: float = 0.9
    choice: Choice = Choice()

    def step(
        self, slots: Slots, logits_SV: FloatArray, tokens: Tokens, number: int, random: np.random.Generator
    ) -> Slots:
        token_S, confidence_S = self.choice.draw(logits_SV, random)
        chosen_S = choose_by_confidence(confidence_S, slots.is_mask(tokens), self.threshold)
        return slots.revealed(chosen_S, token_S, logits_SV)


@dataclass(frozen=True, slots=True)
class LinearSchedule:
    """Reveal a fixed share of the masks in each step, the surest first: the reference sampler of Dream and DiffuCoder.

    In step i of N, with t falling linearly from 1 to `eps`, floor(masks * (1 - t[i+1] / t[i])) slots are revealed; the
    last step reveals all. With few masks some steps reveal nothing.
    """

    steps: int = 64
    choice: Choice = Choice(confidence="entropy")
    eps: float = 1e-3

    def step(
        self, slots: Slots, logits_SV: FloatArray, tokens: Tokens, number: int, random: np.random.Generator
    ) -> Slots:
        masked_S = slots.is_mask(tokens)
        token_S, confidence_S = self.choice.draw(logits_SV, random)
        t = np.linspace(1, self.eps, self.steps + 1)
        masks = int(masked_S.sum())
        quota = masks if number >= self.steps - 1 else int(masks * (1 - t[number + 1] / t[number]))
        return slots.revealed(best(np.where(masked_S, confidence_S, -np.inf), quota), token_S, logits_SV)


@dataclass(frozen=True, slots=True)
class PathPlanning:
    """Reveal all masks, then mask again the slots that are least sure: Open-dCoder's sampler, "p2". arXiv 2502.03540.

    After step i of N, floor(S * (1 - (i + 1) / N)) slots are masks. A slot's confidence is that of the token drawn
    there now, not of the one it holds; so tokens that were revealed earlier may be masked again.
    """

    steps: int = 64
    choice: Choice = Choice(temperature=0.6, top_p=0.95)

    def step(
        self, slots: Slots, logits_SV: FloatArray, tokens: Tokens, number: int, random: np.random.Generator
    ) -> Slots:
        token_S, confidence_S = self.choice.draw(logits_SV, random)
        left = max(0, int(len(slots.ids) * (1 - (number + 1) / self.steps)))
        again = np.argsort(confidence_S, kind="stable")[:left]
        return slots.revealed(slots.is_mask(tokens), token_S, logits_SV).masked_again(again, tokens)


@dataclass(frozen=True, slots=True)
class ExpandAndDelete:
    """Reveal one slot a step; a slot may become two masks or vanish, so the model finds the length: DreamOn's sampler.

    After the first "delete" all slots revealed in this step are deleted, too. arXiv 2602.01326.
    """

    choice: Choice = Choice(temperature=0.2, top_p=0.9, confidence="entropy")
    most: int = 64
    """Most slots; there no slot expands."""

    def step(
        self, slots: Slots, logits_SV: FloatArray, tokens: Tokens, number: int, random: np.random.Generator
    ) -> Slots:
        assert tokens.end is not None and tokens.expand is not None, "a model without expand and delete"
        masked_S = slots.is_mask(tokens)
        if len(slots.ids) >= self.most:
            logits_SV = logits_SV.copy()
            logits_SV[masked_S, tokens.expand] -= FORBIDDEN
        token_S, confidence_S = self.choice.draw(logits_SV, random)
        slots = slots.revealed(best(np.where(masked_S, confidence_S, -np.inf), 1), token_S, logits_SV)
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


def _softmax(logits_SV: FloatArray) -> FloatArray:
    return np.exp(log_softmax(logits_SV))
