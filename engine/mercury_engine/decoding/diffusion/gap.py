"""A fill by a masked diffusion model with full attention, from a row of masks to accepted tokens.

Dimensions: S slots, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mercury_engine.api import Control, Effort
from mercury_engine.decoding.diffusion.length import CalibratedLength, LengthBias
from mercury_engine.decoding.diffusion.rules import (
    Choice,
    ConfidenceThreshold,
    EntropyBound,
    ExpandAndDelete,
    LinearSchedule,
    PathPlanning,
    Rule,
    Slots,
    Tokens,
)
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.decoding.slot_masks import SlotLimits
from mercury_engine.kv_cache.two_sided import TwoSidedCache, TwoSides
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.row_answers import RowAnswers, RowQuestion

FIRST_SLOTS = 8
"""Slots that the search for the length begins with, and DreamOn's first number of masks."""

MOST_STEPS = 256
"""After so many steps a fill takes what is likeliest for every mask that is left; DreamOn's bound."""

SEED = 0
"""Of the rules that draw tokens: the same request has the same answer."""

STEPS: dict[Effort, int] = {"instant": 4, "low": 8, "medium": 16, "high": 64}
"""Steps of the rules that have a fixed number."""

BOUNDS: dict[Effort, float] = {"instant": 4.0, "low": 2.0, "medium": 1.0, "high": 1.0}
"""Factors of the entropy bound: more tokens a step where a quick answer is wanted."""


@dataclass(frozen=True, slots=True)
class MaskedModel:
    """A model with full attention, and how it decodes."""

    cache: TwoSidedCache
    rules: GapRules
    options: DiffusionOptions
    tokens: Tokens
    vocabulary: int
    """Number of tokens that the model tells of."""

    @property
    def finds_length(self) -> bool:
        """Whether it adds and removes slots itself, unless their number is given."""
        return self.tokens.expand is not None and self.options.searches_length

    def rule(self, effort: Effort, most: int) -> Rule:
        """The rule of a fill of at most so many slots."""
        options, steps = self.options, min(most, STEPS[effort])
        if self.finds_length:
            return ExpandAndDelete()
        if options.schedule is not None:
            return PathPlanning(steps) if options.schedule == "path planning" else LinearSchedule(steps)
        if options.threshold is not None:
            return ConfidenceThreshold(options.threshold)
        if effort == "high":
            return PathPlanning(steps, Choice())
        return EntropyBound(options.bound * BOUNDS[effort])


class MaskedGap:
    """One gap under way."""

    def __init__(self, model: MaskedModel, sides: TwoSides, most: int, multiline: bool = True) -> None:
        """`most`: most slots. `multiline`: whether a slot may break the line."""
        self.slots = Slots.masked(0, model.tokens)
        self.sides, self.steps, self.passes, self.tokens_read = sides, 0, 0, 0
        self._model, self._tokens, self.most, self._multiline = model, model.tokens, most, multiline

    def length(self) -> ForwardSteps[int]:
        """The number of slots to begin with, searched unless the model finds it itself."""
        first = min(FIRST_SLOTS, self.most)
        if self._model.finds_length:
            return first
        if not self._model.options.searches_length:
            return self.most
        search = CalibratedLength(_bias(self._model.options), first, most=self.most).search()
        try:
            slots = next(search)
            while True:
                told = yield from self._told(Slots.masked(slots, self._tokens))
                slots = search.send(float(np.exp(told.logp_W).mean()))
        except StopIteration as end:
            return int(end.value)

    def reveal(self, rule: Rule, control: Control, most_steps: int | None = None) -> ForwardSteps[None]:
        """Denoise until no slot is masked; the last of `most_steps` reveals all."""
        random, number = np.random.default_rng(SEED), 0
        while self.slots.is_mask(self._tokens).any():
            self.steps += 1
            if self.steps == most_steps or number >= MOST_STEPS:
                self.slots = self.slots.all_revealed((yield from self._told(self.slots)), self._tokens)
            else:
                told = yield from self._told(self.slots, self._edits(), rule.choice.draws)
                self.slots = rule.step(self.slots, told, self._tokens, number, random)
            number += 1
            self.show(control)

    def _edits(self) -> list[int]:
        """The tokens that delete a slot or expand it, as far as a step may choose them."""
        edits = [self._tokens.end, self._tokens.expand if len(self.slots.ids) < self.most else None]
        return [token for token in edits if token is not None and self._model.finds_length]

    def _told(self, slots: Slots, edits: Sequence[int] = (), draws: bool = False) -> ForwardSteps[RowAnswers]:
        """What a pass tells of the slots, about tokens that a slot may hold and edits of the slots."""
        model = self._model
        found = None if model.options.exact else model.cache.overlap(self.sides)
        new = self.sides.tokens if found is None else found.new
        hidden_V = model.rules.masks.hidden_tokens(SlotLimits("", self._multiline)).copy()
        hidden_V[[*edits]] = False
        question = RowQuestion.of([hidden_V] * len(slots.ids), model.vocabulary, draws)
        told = yield from model.cache.reread(self.sides, slots.ids.tolist(), question, found)
        self.passes, self.tokens_read = self.passes + 1, max(self.tokens_read, new)
        return told

    def mask_from(self, position: int) -> None:
        """Mask the slots again from the one that writes the character at this position of their text."""
        self.slots = self.slots.masked_again(np.arange(self._slot_at(position), len(self.slots.ids)), self._tokens)

    def cut_at(self, position: int) -> None:
        """Drop the slots from that one on."""
        slot = self._slot_at(position)
        self.slots = Slots(self.slots.ids[:slot], self.slots.probability[:slot])

    def _slot_at(self, position: int) -> int:
        texts = self._model.rules.vocabulary.texts
        ends = np.cumsum([len(texts[token]) for token in self.slots.ids])
        return int(np.searchsorted(ends, position, side="right"))

    def show(self, control: Control) -> None:
        """Report the slots to whoever watches."""
        if control.on_step is not None:
            control.on_step(tuple(self.slots.views(self._model.rules.vocabulary.texts, self._tokens)))


def _bias(options: DiffusionOptions) -> LengthBias:
    return LengthBias() if options.length_bias is None else LengthBias.of(options.length_bias)
