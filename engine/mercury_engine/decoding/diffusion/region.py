"""Rewriting a region by masking what is doubtful in it: an edit that left-to-right decoding cannot make.

One pass over the present text gives every token a probability with all others in sight, as path planning judges tokens
that it revealed. Doubtful ones are masked and denoised again, a run at a time, with room for more or fewer tokens: by
the search for the length, or by the model itself where it can change their number. The rest stays as it is.

Dimensions: T tokens of the region, S slots, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from math import prod

import numpy as np

from mercury_engine.api import Control, RegionHunk, Rewrite, RewriteRequest
from mercury_engine.decoding.diffusion.gap import MaskedGap, MaskedModel
from mercury_engine.decoding.diffusion.samplers import Slots
from mercury_engine.kv_cache.two_sided import TwoSides
from mercury_engine.models.arrays import MaskArray
from mercury_engine.models.batching import DeadlineReached, ForwardSteps
from mercury_engine.text.lines import lines_of

DOUBTFUL = 0.1
"""Probability of a present token below which it is masked."""

APART = 2
"""Tokens between two doubtful ones up to which they are masked with them."""

MORE_SLOTS = 16
"""Slots by which a run may grow."""

MOST_RUNS = 4
"""Runs that are written again; a text with more doubts is another text."""


def rewritten(model: MaskedModel, request: RewriteRequest, sides: TwoSides) -> ForwardSteps[Rewrite]:
    """The region between the sides with its doubtful tokens written again; unfinished when time is up."""
    work = _Work(model, sides, [*model.rules.tokenizer.block(request.text)])
    is_finished = False
    with suppress(DeadlineReached):
        yield from work.rewrite()
        is_finished = True
    hunks = tuple(work.hunks(request)) if is_finished else ()
    return Rewrite(
        text=_applied(request.text, hunks),
        probability=prod(each.probability for each in hunks) if is_finished else 0.0,
        change_probability=1 - work.stays,
        steps=work.steps,
        elapsed=0.0,
        is_finished=is_finished,
        tokens_read=work.tokens_read,
        hunks=hunks,
    )


class _Work:
    """A region under way: its tokens, with the probability of those that were written and 1 for those that stay."""

    def __init__(self, model: MaskedModel, sides: TwoSides, ids: list[int]) -> None:
        self._model, self._sides, self._ids, self._old = model, sides, ids, tuple(ids)
        self._present = [1.0] * len(ids)
        self._sure = [1.0] * len(ids)
        self.stays, self.steps, self.tokens_read = 1.0, 0, 0

    def rewrite(self) -> ForwardSteps[None]:
        """Find the doubtful runs and write each again, the last first, so that the others stay where they are."""
        if not self._ids:
            return
        logp_TV = yield from self._model.cache.read(self._sides, self._ids)
        self.steps, self.tokens_read = 1, self._sides.tokens + len(self._ids)
        present_T = np.exp(logp_TV[np.arange(len(self._ids)), self._ids])
        self._present, self.stays = present_T.tolist(), float(present_T.min())
        for start, end in [*runs(present_T < DOUBTFUL)][:MOST_RUNS][::-1]:
            yield from self._write(start, end)

    def _write(self, start: int, end: int) -> ForwardSteps[None]:
        before, after = (*self._sides.before, *self._ids[:start]), (*self._ids[end:], *self._sides.after)
        gap = MaskedGap(self._model, TwoSides(before, after), end - start + MORE_SLOTS)
        slots = yield from gap.length(end - start)
        gap.slots = Slots.masked(slots, self._model.tokens)
        yield from gap.reveal(self._model.sampler("medium", gap.most), Control())
        self.steps += gap.steps
        self._ids[start:end] = gap.slots.ids.tolist()
        self._sure[start:end] = gap.slots.probability.tolist()

    def hunks(self, request: RewriteRequest) -> Iterator[RegionHunk]:
        """The lines that differ, but for those below the probability that the request gives up below."""
        texts = self._model.rules.vocabulary.texts
        old, new = lines_of(request.text), lines_of("".join(texts[token] for token in self._ids))
        for tag, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            sure = prod(self._within(self._sure, self._ids, new_start, new_end))
            stays = min(self._within(self._present, self._old, start, end), default=1.0)
            if tag != "equal" and sure >= request.give_up_below:
                yield RegionHunk(start, end, "".join(new[new_start:new_end]), sure, stays)

    def _within(self, values: Sequence[float], ids: Sequence[int], start: int, end: int) -> Iterator[float]:
        """The values of the tokens that begin in these lines."""
        line = 0
        for token, value in zip(ids, values, strict=True):
            if start <= line < max(end, start + 1):
                yield value
            line += self._model.rules.vocabulary.texts[token].count("\n")


def runs(doubtful_T: MaskArray) -> Iterator[tuple[int, int]]:
    """Runs of doubtful tokens, those a few tokens apart as one."""
    places = np.flatnonzero(doubtful_T).tolist()
    while places:
        start = end = places.pop(0)
        while places and places[0] - end <= APART + 1:
            end = places.pop(0)
        yield start, end + 1


def _applied(text: str, hunks: Sequence[RegionHunk]) -> str:
    lines = lines_of(text)
    for hunk in reversed(hunks):
        lines[hunk.start : hunk.end] = [hunk.text]
    return "".join(lines)
