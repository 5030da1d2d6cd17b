"""A fill by a masked diffusion model with full attention, from a row of masks to accepted tokens.

Dimensions: S slots, V vocabulary.
"""

import math
from dataclasses import dataclass

import numpy as np

from mercury_engine.api import Control, Effort
from mercury_engine.decoding.diffusion.length import CalibratedLength, LengthBias
from mercury_engine.decoding.diffusion.samplers import (
    Choice,
    ConfidenceThreshold,
    EntropyBound,
    ExpandAndDelete,
    LinearSchedule,
    PathPlanning,
    Sampler,
    Slots,
    Tokens,
)
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.decoding.slot_masks import SlotLimits
from mercury_engine.kv_cache.two_sided import TwoSidedCache, TwoSides
from mercury_engine.models.arrays import FloatArray, log_softmax
from mercury_engine.models.batching import ForwardSteps

FIRST_SLOTS = 8
"""Slots that the search for the length begins with, and DreamOn's first number of masks."""

MOST_STEPS = 256
"""After so many steps a fill takes what is likeliest for every mask that is left; DreamOn's bound."""

SEED = 0
"""Of the samplers that draw tokens: the same request has the same answer."""

STEPS: dict[Effort, int] = {"instant": 4, "low": 8, "medium": 16, "high": 64}
"""Steps of the samplers that have a fixed number."""

BOUNDS: dict[Effort, float] = {"instant": 4.0, "low": 2.0, "medium": 1.0, "high": 1.0}
"""Factors of the entropy bound: more tokens a step where a quick answer is wanted."""


@dataclass(frozen=True, slots=True)
class MaskedModel:
    """A model with full attention, and how it decodes."""

    cache: TwoSidedCache
    rules: GapRules
    options: DiffusionOptions
    tokens: Tokens

    @property
    def finds_length(self) -> bool:
        """Whether it adds and removes slots itself, unless their number is given."""
        return self.tokens.expand is not None and self.options.searches_length

    def sampler(self, effort: Effort, most: int) -> Sampler:
        """The sampler of a fill of at most so many slots."""
        options, steps = self.options, min(most, STEPS[effort])
        if self.finds_length:
            return ExpandAndDelete(most=most)
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
                logp_SV = yield from self.expected(Slots.masked(slots, self._tokens))
                slots = search.send(float(np.exp(logp_SV.max(-1)).mean()))
        except StopIteration as end:
            return int(end.value)

    def reveal(self, sampler: Sampler, control: Control, most_steps: int | None = None) -> ForwardSteps[None]:
        """Denoise until no slot is masked; the last of `most_steps` reveals all."""
        random, number = np.random.default_rng(SEED), 0
        while (masked_S := self.slots.is_mask(self._tokens)).any():
            logp_SV = yield from self.expected(self.slots)
            self.steps += 1
            if self.steps == most_steps or number >= MOST_STEPS:
                self.slots = self.slots.revealed(masked_S, logp_SV.argmax(-1), logp_SV)
            else:
                self.slots = sampler.step(self.slots, logp_SV, self._tokens, number, random)
            number += 1
            self.show(control)

    def expected(self, slots: Slots) -> ForwardSteps[FloatArray]:
        """Log-probabilities [S,V] of the tokens that a slot may hold."""
        model, tokens = self._model, self._tokens
        found = None if model.options.exact else model.cache.overlap(self.sides)
        logp_SV = yield from model.cache.reread(self.sides, slots.ids.tolist(), found)
        new = self.sides.tokens if found is None else found.new
        self.passes, self.tokens_read = self.passes + 1, max(self.tokens_read, new)
        hidden_V = model.rules.masks.hidden_tokens(SlotLimits("", self._multiline))[: logp_SV.shape[1]].copy()
        for token in (tokens.end, tokens.expand) if model.finds_length else ():
            hidden_V[token] = False
        return log_softmax(np.where(hidden_V, -math.inf, logp_SV))

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
