"""Rules of masked diffusion: which slots a denoise step reveals, masks again, inserts or deletes.

A rule is a value with one pure function, `step`: from the canvas and a token drawn for each slot to the next canvas.
Most rules only say which masks a step reveals (`Limits`), so a GPU can follow them. Ties go to the leftmost slot.

Dimensions: S slots, K candidates, the likeliest tokens of a slot.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from mercury_engine.api import Effort
from mercury_engine.decoding.diffusion.canvas import Canvas, Tokens
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.models.arrays import FloatArray, IdArray, MaskArray, log_softmax
from mercury_engine.models.network import MaskedAttention
from mercury_engine.models.row_answers import Limits, Reveal, RowAnswers

STEPS: dict[Effort, int] = {"instant": 4, "low": 8, "medium": 16, "high": 64}
"""Steps of the rules that have a fixed number."""

BOUNDS: dict[Effort, float] = {"instant": 4.0, "low": 2.0, "medium": 1.0, "high": 1.0}
"""Factors of the entropy bound of models with full attention: a quick answer reveals more tokens per step."""

LAST_TIME = 1e-3


@dataclass(frozen=True, slots=True)
class Drawn:
    """A token for every slot."""

    token_S: IdArray
    confidence_S: FloatArray
    probability_S: FloatArray
    """The model's probability of the token, whatever distribution it was drawn from."""

    @classmethod
    def ranked(cls, told: RowAnswers, rank: int) -> "Drawn":
        """The candidate of this rank for each slot; 0 is the likeliest."""
        probability_S = np.exp(told.candidate_logp_WK[:, rank])
        return cls(told.candidate_WK[:, rank].astype(np.int64), probability_S, probability_S)

    def on(self, canvas: Canvas, chosen: IdArray | MaskArray) -> Canvas:
        """The canvas with these tokens in the chosen slots."""
        return canvas.revealed(chosen, self.token_S, self.probability_S)


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
        """The logits, which fall, with -inf for those that are cut."""
        kept_SK = np.ones(logits_SK.shape, np.bool_)
        if self.top_p < 1:
            power_SK = np.exp(log_softmax(logits_SK))
            kept_SK = power_SK.cumsum(-1) - power_SK <= self.top_p
        if self.top_k:
            kept_SK[:, self.top_k :] = False
        return np.where(kept_SK, logits_SK, -np.inf)


class Rule(Protocol):
    """One step of denoising."""

    @property
    def choice(self) -> Choice:
        """How the rule draws tokens."""

    @property
    def settles(self) -> bool:
        """Whether revealed tokens stay, so that they may be accepted at once."""
        return True

    def limits(self, number: int, slots: int) -> Limits:
        """Which of the `slots` step `number`, counted from 0, reveals."""

    def step(self, canvas: Canvas, drawn: Drawn, number: int) -> Canvas:
        """The canvas after step `number`; it may have more or fewer slots."""
        limits = self.limits(number, len(canvas))
        again = np.argsort(drawn.confidence_S, kind="stable")[: limits.again]
        return drawn.on(canvas, chosen(drawn.confidence_S, canvas.is_mask, limits)).masked_again(again)

    def ahead(self, canvas: Canvas, number: int, shift: int, random: np.random.Generator | None = None) -> Reveal:
        """The rule as a GPU applies it; `random` draws the tokens."""
        now, after = (self.limits(each, len(canvas)) for each in (number, number + 1))
        is_last = not now.again and (now.share == 1 or canvas.is_mask.sum() == 1)
        choice, limits = self.choice, () if is_last else (now, after)
        drawn = (choice.temperature, choice.top_p, choice.top_k, random) if choice.draws else ()
        return Reveal(shift, canvas.tokens.end, choice.confidence == "entropy", limits, None, None, *drawn)


@dataclass(frozen=True, slots=True)
class EntropyBound(Rule):
    """Reveal by rising entropy while the sum less the largest is at most `bound` nats. arXiv 2505.24857."""

    bound: float = 0.1
    choice: Choice = Choice(confidence="entropy")

    def limits(self, number: int, slots: int) -> Limits:
        return Limits(count=1, bound=self.bound)


@dataclass(frozen=True, slots=True)
class ConfidenceThreshold(Rule):
    """Reveal every slot at least as sure as `threshold`, and always the surest one. arXiv 2505.22618."""

    threshold: float = 0.9
    choice: Choice = Choice()

    def limits(self, number: int, slots: int) -> Limits:
        return Limits(count=1, least=self.threshold)


@dataclass(frozen=True, slots=True)
class LinearSchedule(Rule):
    """Reveal a fixed share of the masks in each step, the surest first: the reference sampler of Dream and DiffuCoder.

    In step i of N, with t falling linearly from 1 to LAST_TIME, floor(masks * (1 - t[i+1] / t[i])) slots are revealed;
    the last step reveals all. With few masks some steps reveal nothing.
    """

    steps: int = 64
    choice: Choice = Choice(confidence="entropy")

    def limits(self, number: int, slots: int) -> Limits:
        now, after = (1 + each * ((LAST_TIME - 1) / self.steps) for each in (number, number + 1))
        return Limits(share=1.0 if number >= self.steps - 1 else 1 - after / now)


@dataclass(frozen=True, slots=True)
class PathPlanning(Rule):
    """Reveal all masks, then mask again the slots that are least sure: Open-dCoder's sampler, "p2". arXiv 2502.03540.

    After step i of N, floor(S * (1 - (i + 1) / N)) slots are masks. A slot's confidence is that of the token drawn
    there now, not of the one it holds; so tokens that were revealed earlier may be masked again.
    """

    steps: int = 64
    choice: Choice = Choice(temperature=0.6, top_p=0.95)

    @property
    def settles(self) -> bool:
        return False

    def limits(self, number: int, slots: int) -> Limits:
        return Limits(share=1.0, again=max(0, int(slots * (1 - (number + 1) / self.steps))))


@dataclass(frozen=True, slots=True)
class ExpandAndDelete(Rule):
    """Reveal one slot a step; a slot may become two masks or vanish, so the model finds the length: DreamOn's sampler.

    Masks after the first "delete" of this step are deleted, too. arXiv 2602.01326.
    """

    choice: Choice = Choice(temperature=0.2, top_p=0.9, confidence="entropy")

    def limits(self, number: int, slots: int) -> Limits:
        return Limits(count=1)

    def step(self, canvas: Canvas, drawn: Drawn, number: int) -> Canvas:
        revealed, tokens = Rule.step(self, canvas, drawn, number), canvas.tokens
        deleted_S = canvas.is_mask & np.maximum.accumulate(revealed.ids == tokens.delete)
        expanded_S = ~deleted_S & (revealed.ids == tokens.expand)
        return revealed.masked_again(expanded_S).repeated(np.where(deleted_S, 0, 1 + expanded_S))

    def ahead(self, canvas: Canvas, number: int, shift: int, random: np.random.Generator | None = None) -> Reveal:
        tokens = canvas.tokens
        return replace(Rule.ahead(self, canvas, number, shift, random), delete=tokens.delete, expand=tokens.expand)


def rule_of(
    attention: MaskedAttention | None, tokens: Tokens, options: DiffusionOptions, effort: Effort, most: int
) -> Rule:
    """The rule for fills of at most `most` slots; `attention`: None for a context that is read causally."""
    if attention is not None and attention.block is not None:
        return threshold_of(attention, options)
    if tokens.expand is not None:
        return ExpandAndDelete()
    steps = min(most, STEPS[effort])
    if attention is not None and options.schedule is not None:
        return PathPlanning(steps) if options.schedule == "path planning" else LinearSchedule(steps)
    if options.threshold is not None:
        return ConfidenceThreshold(options.threshold)
    if attention is not None and effort == "high":
        return PathPlanning(steps, Choice())
    return EntropyBound(options.bound * (1.0 if attention is None else BOUNDS[effort]))


def threshold_of(attention: MaskedAttention, options: DiffusionOptions, choice: Choice = Choice()) -> Rule:
    """The rule of generated texts, and of models in blocks; its threshold is the model's unless its settings say."""
    return ConfidenceThreshold(attention.threshold if options.threshold is None else options.threshold, choice)


def chosen(confidence_S: FloatArray, masked_S: MaskArray, limits: Limits) -> MaskArray:
    """bool [S]: the masks that a step reveals."""
    order_S = np.argsort(np.where(masked_S, -confidence_S, np.inf), kind="stable")
    spent_S = np.roll(np.cumsum(-confidence_S[order_S]), 1)  # before a slot: sum - max of the run that ends with it
    spent_S[0] = 0.0
    allowed_S = (confidence_S[order_S] >= limits.least) | (spent_S <= limits.bound)
    allowed_S[: limits.count + int(masked_S.sum() * limits.share)] = True
    chosen_S = np.zeros(masked_S.shape, np.bool_)
    chosen_S[order_S[allowed_S]] = True
    return chosen_S & masked_S


def _at(values_SK: NDArray[Any], place_S: IdArray) -> NDArray[Any]:
    """[S]: the value at a place of each row."""
    return np.take_along_axis(values_SK, place_S[:, None], -1)[:, 0]
