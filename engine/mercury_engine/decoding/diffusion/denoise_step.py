"""One denoising step: which slots of a canvas are unmasked, by what the model expects at each.

Dimensions: S slots of the canvas, V vocabulary with mask and end.
"""

import numpy as np

from mercury_engine.decoding.diffusion.canvas import Canvas
from mercury_engine.decoding.diffusion.rules import choose_by_confidence, choose_by_entropy
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.decoding.slot_masks import SlotLimits, SlotMasks, next_limits
from mercury_engine.models.arrays import FloatArray, IdArray, MaskArray
from mercury_engine.models.row_answers import RowAnswers


class DenoiseStep:
    """Steps for one vocabulary."""

    def __init__(self, masks: SlotMasks, options: DiffusionOptions) -> None:
        self._masks, self._options = masks, options

    def unmask(self, canvas: Canvas, told: RowAnswers, is_last: bool) -> None:
        """Unmask slots by what a pass told of them; the last step unmasks all of them.

        Otherwise the bound in nats or the threshold chooses.
        """
        only_first = canvas.written.rank > 0
        token_S, logp_S = told.token_W.astype(np.int64), told.logp_W
        if rank := canvas.written.take_rank():
            token_S[0], logp_S[0] = told.candidate_WK[0, rank], told.candidate_logp_WK[0, rank]
        masked_S = np.array(canvas.ids) == canvas.written.vocabulary.mask_id
        if is_last:
            chosen_S = masked_S
        elif only_first:
            chosen_S = np.arange(len(masked_S)) == 0
        else:
            chosen_S = self._chosen(told, masked_S)
        _unmask(canvas, chosen_S, token_S, np.exp(logp_S))

    def hidden(self, canvas: Canvas) -> list[MaskArray]:
        """The tokens that each slot may not get."""
        written = canvas.written
        first, other = (
            self._masks.hidden_tokens(limits) for limits in (next_limits(written), SlotLimits("", written.multiline))
        )
        if not self._options.searches_length:
            first, other = first.copy(), other.copy()
            first[written.vocabulary.end_id] = other[written.vocabulary.end_id] = True
        return [first] + [other] * (len(canvas.ids) - 1)

    def _chosen(self, told: RowAnswers, masked_S: MaskArray) -> MaskArray:
        if self._options.threshold is not None:
            return choose_by_confidence(np.exp(told.logp_W), masked_S, self._options.threshold)
        return choose_by_entropy(told.entropy_W, masked_S, self._options.bound)


def _unmask(canvas: Canvas, chosen_S: MaskArray, token_S: IdArray, probability_S: FloatArray) -> None:
    """Unmask the chosen slots, and make all slots after the first end marker end markers."""
    vocabulary = canvas.written.vocabulary
    for slot in np.flatnonzero(chosen_S).tolist():
        canvas.ids[slot], canvas.probabilities[slot] = int(token_S[slot]), float(probability_S[slot])
    if vocabulary.end_id in canvas.ids:
        after = canvas.ids.index(vocabulary.end_id) + 1
        rest = len(canvas.ids) - after
        canvas.ids[after:], canvas.probabilities[after:] = [vocabulary.end_id] * rest, [1.0] * rest
