"""One denoising step: which slots of a canvas are unmasked, by what the model expects at each.

Dimensions: S slots of the canvas, V vocabulary with mask and end.
"""

import numpy as np

from mercury_engine.decoding.diffusion.canvas import Canvas
from mercury_engine.decoding.diffusion.unmasking import choose_by_confidence, choose_by_entropy, entropy
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.decoding.slot_masks import SlotLimits, SlotMasks, next_limits
from mercury_engine.models.arrays import Array, FloatArray, IdArray, MaskArray, best, log_softmax, on_host


class DenoiseStep:
    """Steps for one vocabulary."""

    def __init__(self, masks: SlotMasks, options: DiffusionOptions) -> None:
        self._masks, self._options = masks, options

    def unmask(self, canvas: Canvas, logp_SV: Array, is_last: bool) -> None:
        """Unmask slots by the model's log-probabilities [S,V]; the last step unmasks all of them.

        Otherwise the bound in nats or the threshold chooses.
        """
        logp_SV = self._permitted(canvas, logp_SV)
        only_first = canvas.written.rank > 0
        token_S = logp_SV.argmax(-1)
        token_S[0] = best(logp_SV[0], canvas.written.take_rank())
        masked_S = np.array(canvas.ids) == canvas.written.vocabulary.mask_id
        if is_last:
            chosen_S = masked_S
        elif only_first:
            chosen_S = np.arange(len(masked_S)) == 0
        else:
            chosen_S = self._chosen(logp_SV, masked_S)
        probability_S = np.exp(np.take_along_axis(logp_SV, token_S[:, None], 1)[:, 0])
        _unmask(canvas, chosen_S, token_S, probability_S)

    def _permitted(self, canvas: Canvas, logp_SV: Array) -> FloatArray:
        """Log-probabilities of the tokens that each slot may get, on the host."""
        seen_SV, limits = on_host(logp_SV), SlotLimits("", canvas.written.multiline)
        permitted_SV = self._masks.apply(limits, seen_SV)
        permitted_SV[0] = self._masks.apply(next_limits(canvas.written), seen_SV[0])
        if not self._options.searches_length:
            permitted_SV[:, canvas.written.vocabulary.end_id] = -np.inf
        return log_softmax(permitted_SV)

    def _chosen(self, logp_SV: FloatArray, masked_S: MaskArray) -> MaskArray:
        if self._options.threshold is not None:
            return choose_by_confidence(np.exp(logp_SV.max(-1)), masked_S, self._options.threshold)
        return choose_by_entropy(entropy(logp_SV), masked_S, self._options.bound)


def _unmask(canvas: Canvas, chosen_S: MaskArray, token_S: IdArray, probability_S: FloatArray) -> None:
    """Unmask the chosen slots, and make all slots after the first end marker end markers."""
    vocabulary = canvas.written.vocabulary
    for slot in np.flatnonzero(chosen_S).tolist():
        canvas.ids[slot], canvas.probabilities[slot] = int(token_S[slot]), float(probability_S[slot])
    if vocabulary.end_id in canvas.ids:
        after = canvas.ids.index(vocabulary.end_id) + 1
        rest = len(canvas.ids) - after
        canvas.ids[after:], canvas.probabilities[after:] = [vocabulary.end_id] * rest, [1.0] * rest
