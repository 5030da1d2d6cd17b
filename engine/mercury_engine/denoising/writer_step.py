"""A step in which the writer decides alone: it commits the slots that it is sure of, anywhere on the canvas.

Here a step is decided on the host; on a GPU `cuda/graphs.py` makes the same decisions on the device. Tokens of a
draft are judged first: those that the writer would choose stay, the others are masked.

Dimensions: S slots from the first one that is not settled, V vocabulary with mask and end.
"""

import numpy as np

from mercury_engine.denoising.canvas import Canvas
from mercury_engine.denoising.slot_masks import SlotLimits, SlotMasks, first_slot_limits
from mercury_engine.denoising.unmasking import choose_by_confidence, choose_by_entropy, entropy
from mercury_engine.models.arrays import Array, FloatArray, IdArray, MaskArray, best, log_softmax, on_host


class WriterStep:
    """Decides for one vocabulary."""

    def __init__(self, masks: SlotMasks) -> None:
        self._masks = masks

    def decide(
        self,
        canvas: Canvas,
        written_SV: Array,
        multiline: bool,
        bound: float,
        threshold: float | None,
        is_last_step: bool,
    ) -> None:
        """Commit slots by the writer's log-probabilities [S,V]; the last step commits all of them.

        Otherwise the step judges drafts if there are any, or chooses slots by the bound in nats or by the threshold.
        """
        logp_SV = self._permitted(canvas, written_SV, multiline)
        token_S = logp_SV.argmax(-1)
        rank, only_first = (0, canvas.choice > 0) if canvas.spell else (canvas.choice, canvas.choice > 0)
        token_S[0] = best(logp_SV[0], rank)
        canvas.choice = canvas.choice if canvas.spell else 0
        ids_S = np.array(canvas.ids[canvas.settled :])
        masked_S = ids_S == canvas.vocabulary.mask_id
        draft_S = ~masked_S & np.array([s not in canvas.committed for s in range(canvas.settled, len(canvas.ids))])
        if is_last_step:
            chosen_S = masked_S | draft_S
        elif draft_S.any():
            chosen_S = draft_S & (ids_S == token_S)
        else:
            chosen_S = _chosen(logp_SV, masked_S, bound, threshold)
            if only_first:
                chosen_S = np.arange(len(ids_S)) == 0
        chance_S = np.exp(np.take_along_axis(logp_SV, token_S[:, None], 1)[:, 0])
        _commit(canvas, chosen_S, draft_S, token_S, chance_S)

    def _permitted(self, canvas: Canvas, written_SV: Array, multiline: bool) -> FloatArray:
        """Log-probabilities of the tokens that each slot may get, on the host."""
        written_SV = on_host(written_SV)
        logp_SV = self._masks.apply(SlotLimits("", multiline), written_SV)
        logp_SV[0] = self._masks.apply(first_slot_limits(canvas, multiline), written_SV[0])
        return log_softmax(logp_SV)


def _commit(canvas: Canvas, chosen_S: MaskArray, draft_S: MaskArray, token_S: IdArray, chance_S: FloatArray) -> None:
    """Commit the chosen slots, mask refused drafts, and make all slots behind the first end marker end markers."""
    rows = zip(*(each.tolist() for each in (chosen_S, draft_S, token_S, chance_S)), strict=True)
    for slot, (chosen, draft, token, chance) in enumerate(rows, canvas.settled):
        if chosen:
            canvas.ids[slot], canvas.committed[slot] = token, chance
        elif draft:
            canvas.ids[slot] = canvas.vocabulary.mask_id
    end = canvas.vocabulary.end_id
    if end in canvas.ids[canvas.settled :]:
        behind = range(canvas.ids.index(end, canvas.settled) + 1, len(canvas.ids))
        canvas.ids[behind.start :] = [end] * len(behind)
        canvas.committed.update(dict.fromkeys(behind, 1.0))


def _chosen(logp_SV: FloatArray, masked_S: MaskArray, bound: float, threshold: float | None) -> MaskArray:
    if threshold is not None:
        return choose_by_confidence(np.exp(logp_SV.max(-1)), masked_S, threshold)
    return choose_by_entropy(entropy(logp_SV), masked_S, bound)
