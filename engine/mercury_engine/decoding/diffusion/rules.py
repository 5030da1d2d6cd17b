"""The canvas of a masked diffusion model, and rules: which slots a step reveals, masks again, inserts or deletes.

A rule is data: how tokens are drawn, and the limits of every step. So the host applies it to a canvas, and a GPU to its
rows. Ties go to the leftmost slot.

Dimensions: S slots.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mercury_engine.api import Effort, SlotView
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.models.arrays import FloatArray, IdArray, MaskArray
from mercury_engine.models.network import MaskedAttention
from mercury_engine.models.row_answers import Choice, Drawn, Limits, Reveal, Tokens

STEPS: dict[Effort, int] = {"instant": 4, "low": 8, "medium": 16, "high": 64}
"""Steps of the rules that have a fixed number."""

BOUNDS: dict[Effort, float] = {"instant": 4.0, "low": 2.0, "medium": 1.0, "high": 1.0}
"""Factors of the entropy bound of models with full attention: a quick answer reveals more tokens per step."""

LAST_TIME = 1e-3

LIKELIEST, BY_ENTROPY = Choice(), Choice(confidence="entropy")
PATH_PLANNING = Choice(temperature=0.6, top_p=0.95)
EXPAND_AND_DELETE = Choice(temperature=0.2, top_p=0.9, confidence="entropy")


@dataclass(frozen=True, slots=True)
class Canvas:
    """A row of slots after the accepted tokens of a text, from the left, each a mask or a token.

    A canvas is a value. Tokens revealed at its left end are accepted, and the rest is the next canvas.
    """

    ids: IdArray
    """int64 [S]."""
    probability: FloatArray
    """float32 [S]: the probability of each token when it was revealed; 0 for masks."""
    tokens: Tokens

    @classmethod
    def masked(cls, slots: int, tokens: Tokens) -> "Canvas":
        """A canvas of masks."""
        return cls(np.full(slots, tokens.mask, np.int64), np.zeros(slots, np.float32), tokens)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def is_mask(self) -> MaskArray:
        """bool [S]."""
        return self.ids == self.tokens.mask

    def revealed(self, chosen: IdArray | MaskArray, drawn: Drawn) -> "Canvas":
        """The canvas with the drawn tokens in the chosen slots."""
        ids_S, sure_S = self.ids.copy(), self.probability.copy()
        ids_S[chosen], sure_S[chosen] = drawn.token_S[chosen], drawn.probability_S[chosen]
        if (end := self.tokens.end) is not None and end in ids_S:
            after = int(np.argmax(ids_S == end)) + 1
            ids_S[after:], sure_S[after:] = end, 1.0
        return Canvas(ids_S, sure_S, self.tokens)

    def masked_again(self, chosen: IdArray | MaskArray) -> "Canvas":
        """The canvas with masks in the chosen slots."""
        ids_S, sure_S = self.ids.copy(), self.probability.copy()
        ids_S[chosen], sure_S[chosen] = self.tokens.mask, 0.0
        return Canvas(ids_S, sure_S, self.tokens)

    def repeated(self, times_S: IdArray) -> "Canvas":
        """The canvas with each slot repeated: 0 times deletes it, 2 times inserts a copy."""
        return Canvas(self.ids.repeat(times_S), self.probability.repeat(times_S), self.tokens)

    def __getitem__(self, slots: slice) -> "Canvas":
        return Canvas(self.ids[slots], self.probability[slots], self.tokens)

    def __add__(self, other: "Canvas") -> "Canvas":
        ids_S, sure_S = np.concatenate((self.ids, other.ids)), np.concatenate((self.probability, other.probability))
        return Canvas(ids_S, sure_S, self.tokens)

    def views(self, texts: Sequence[str]) -> list[SlotView]:
        """The slots for displaying the denoising."""
        return [self._view(*slot, texts) for slot in zip(self.ids.tolist(), self.probability.tolist(), strict=True)]

    def _view(self, token: int, probability: float, texts: Sequence[str]) -> SlotView:
        if token == self.tokens.mask:
            return SlotView("", "mask", 0.0)
        if token == self.tokens.end:
            return SlotView("", "end", probability)
        return SlotView(texts[token], "committed", probability)


@dataclass(frozen=True, slots=True)
class Rule:
    """One step of denoising."""

    limits: Callable[[int, int], Limits]
    """Which slots a step reveals, by its number from 0 and the number of slots."""
    choice: Choice
    settles: bool = True
    """Whether revealed tokens stay, so that they may be accepted at once."""

    def step(self, canvas: Canvas, drawn: Drawn, number: int) -> Canvas:
        """The canvas after step `number`; it may have more or fewer slots."""
        limits, tokens = self.limits(number, len(canvas)), canvas.tokens
        again = np.argsort(drawn.confidence_S, kind="stable")[: limits.again]
        after = canvas.revealed(chosen(drawn.confidence_S, canvas.is_mask, limits), drawn).masked_again(again)
        if tokens.expand is None:
            return after
        deleted_S = canvas.is_mask & np.maximum.accumulate(after.ids == tokens.delete)
        expanded_S = ~deleted_S & (after.ids == tokens.expand)
        return after.masked_again(expanded_S).repeated(np.where(deleted_S, 0, 1 + expanded_S))

    def ahead(self, canvas: Canvas, number: int, shift: int, random: np.random.Generator) -> Reveal:
        """The rule as a GPU applies it; `random` draws the tokens."""
        now, after = (self.limits(each, len(canvas)) for each in (number, number + 1))
        is_last = not now.again and (now.share == 1 or canvas.is_mask.sum() == 1)
        limits = () if is_last else (now, after)
        return Reveal(shift, canvas.tokens, self.choice, limits, random if self.choice.draws else None)


def entropy_bound(bound: float = 0.1) -> Rule:
    """Reveal by rising entropy while the sum less the largest is at most `bound` nats. arXiv 2505.24857."""
    return Rule(lambda number, slots: Limits(count=1, bound=bound), BY_ENTROPY)


def confidence_threshold(threshold: float = 0.9, choice: Choice = LIKELIEST) -> Rule:
    """Reveal every slot at least as sure as `threshold`, and always the surest one. arXiv 2505.22618."""
    return Rule(lambda number, slots: Limits(count=1, least=threshold), choice)


def linear_schedule(steps: int = 64) -> Rule:
    """Reveal a fixed share of the masks in each step, the surest first: the reference sampler of Dream and DiffuCoder.

    In step i of N, with t falling linearly from 1 to LAST_TIME, floor(masks * (1 - t[i+1] / t[i])) slots are revealed;
    the last step reveals all. With few masks some steps reveal nothing.
    """

    def limits(number: int, slots: int) -> Limits:
        now, after = (1 + each * ((LAST_TIME - 1) / steps) for each in (number, number + 1))
        return Limits(share=1.0 if number >= steps - 1 else 1 - after / now)

    return Rule(limits, BY_ENTROPY)


def path_planning(steps: int = 64, choice: Choice = PATH_PLANNING) -> Rule:
    """Reveal all masks, then mask again the slots that are least sure: Open-dCoder's sampler, "p2". arXiv 2502.03540.

    After step i of N, floor(S * (1 - (i + 1) / N)) slots are masks. A slot's confidence is that of the token drawn
    there now, not of the one it holds; so tokens that were revealed earlier may be masked again.
    """

    def limits(number: int, slots: int) -> Limits:
        return Limits(share=1.0, again=max(0, int(slots * (1 - (number + 1) / steps))))

    return Rule(limits, choice, settles=False)


def expand_and_delete(choice: Choice = EXPAND_AND_DELETE) -> Rule:
    """Reveal one slot a step; a slot may become two masks or vanish, so the model finds the length: DreamOn's sampler.

    Masks after the first "delete" of this step are deleted, too. arXiv 2602.01326.
    """
    return Rule(lambda number, slots: Limits(count=1), choice)


def rule_of(
    attention: MaskedAttention | None, tokens: Tokens, options: DiffusionOptions, effort: Effort, most: int
) -> Rule:
    """The rule for fills of at most `most` slots; `attention`: None for a context that is read causally."""
    if attention is not None and attention.block is not None:
        return threshold_of(attention, options)
    if tokens.expand is not None:
        return expand_and_delete()
    steps = min(most, STEPS[effort])
    if attention is not None and options.schedule is not None:
        return path_planning(steps) if options.schedule == "path planning" else linear_schedule(steps)
    if options.threshold is not None:
        return confidence_threshold(options.threshold)
    if attention is not None and effort == "high":
        return path_planning(steps, LIKELIEST)
    return entropy_bound(options.bound * (1.0 if attention is None else BOUNDS[effort]))


def threshold_of(attention: MaskedAttention, options: DiffusionOptions, choice: Choice = LIKELIEST) -> Rule:
    """The rule of generated texts, and of models in blocks; its threshold is the model's unless its settings say."""
    return confidence_threshold(attention.threshold if options.threshold is None else options.threshold, choice)


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
