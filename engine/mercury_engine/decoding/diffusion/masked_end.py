"""The end of a text whose tokens all see each other: a block of open slots, and masks after it.

Dimensions: S slots, V vocabulary.
"""

from collections.abc import Sequence

import numpy as np

from mercury_engine.decoding.diffusion.gap import MaskedModel
from mercury_engine.decoding.diffusion.rules import ConfidenceThreshold, Slots
from mercury_engine.kv_cache.two_sided import TwoSides
from mercury_engine.models.arrays import MaskArray
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.row_answers import RowAnswers, RowQuestion

BLOCK = 32
"""Slots that are all revealed before those after them, as in LLaDA's sampler."""

MOST_AHEAD = 128
"""Masks after the block; they tell the model how much longer the text may become."""

THRESHOLD = 0.9
"""Fast-dLLM's, arXiv 2505.22618."""


class MaskedEnd:
    """The end of one text; its methods are those of `Blocks`."""

    def __init__(self, model: MaskedModel, start: int, end: int) -> None:
        """`start`: tokens of the prompt. `end`: most tokens of the whole text."""
        options = model.options
        self.tokens = model.tokens
        self.rule = ConfidenceThreshold(THRESHOLD if options.threshold is None else options.threshold)
        self._vocabulary = model.vocabulary
        self._cache, self._exact, self._start, self._end = model.cache.empty(), options.exact, start, end

    def opened(self, ids: Sequence[int]) -> Slots:
        """The slots after a text, up to the end of their block: masks."""
        place = (len(ids) - self._start) % BLOCK
        return Slots.masked(min(BLOCK - place, self._end - len(ids)), self.tokens)

    def told(
        self, ids: Sequence[int], slots: Sequence[int], hidden: Sequence[MaskArray], draws: bool
    ) -> ForwardSteps[RowAnswers]:
        """What a pass tells of the slots after `ids`; the whole text is read again for each block."""
        ahead = min(MOST_AHEAD, self._end - len(ids) - len(slots))
        sides = TwoSides(tuple(ids), (self.tokens.mask,) * ahead)
        question = RowQuestion.of(hidden, self._vocabulary, draws)
        return (
            yield from self._cache.reread(sides, slots, question, None if self._exact else self._cache.overlap(sides))
        )

    def revealed(
        self,
        rule: ConfidenceThreshold,
        slots: Slots,
        told: RowAnswers,
        place: int,
        step: int,
        random: np.random.Generator,
    ) -> Slots:
        """The slots after a step."""
        return rule.step(slots, told, self.tokens, step, random)
