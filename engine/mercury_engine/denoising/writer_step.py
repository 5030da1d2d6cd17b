"""A step in which the writer decides alone: it commits the slots that it is sure of, anywhere on the canvas.

Here a step is decided in plain torch; on a GPU `cuda/graphs.py` makes the same decisions on the device. Tokens of a
draft are judged first: those that the writer would choose stay, the others are masked.

Dimensions: S slots from the first one that is not settled, V vocabulary with mask and end.
"""

import torch
from torch import Tensor

from mercury_engine.denoising.canvas import Canvas
from mercury_engine.denoising.slot_masks import SlotLimits, SlotMasks, first_slot_limits
from mercury_engine.denoising.unmasking import choose_by_confidence, choose_by_entropy, entropy


class WriterStep:
    """Decides for one vocabulary."""

    def __init__(self, masks: SlotMasks) -> None:
        self._masks = masks

    def decide(
        self,
        canvas: Canvas,
        written_SV: Tensor,
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
        token_S[0] = logp_SV[0].topk(rank + 1).indices[-1]
        canvas.choice = canvas.choice if canvas.spell else 0
        ids_S = torch.tensor(canvas.ids[canvas.settled :])
        masked_S = ids_S == canvas.vocabulary.mask_id
        draft_S = ~masked_S & torch.tensor([s not in canvas.committed for s in range(canvas.settled, len(canvas.ids))])
        if is_last_step:
            chosen_S = masked_S | draft_S
        elif bool(draft_S.any()):
            chosen_S = draft_S & (ids_S == token_S)
        else:
            chosen_S = _chosen(logp_SV, masked_S, bound, threshold)
            if only_first:
                chosen_S = torch.arange(len(ids_S)) == 0
        chance_S = logp_SV.gather(1, token_S[:, None])[:, 0].exp()
        _commit(canvas, chosen_S, draft_S, token_S, chance_S)

    def _permitted(self, canvas: Canvas, written_SV: Tensor, multiline: bool) -> Tensor:
        """Log-probabilities of the tokens that each slot may get, on the CPU."""
        written_SV = written_SV.cpu()
        logp_SV = self._masks.apply(SlotLimits("", multiline), written_SV)
        logp_SV[0] = self._masks.apply(first_slot_limits(canvas, multiline), written_SV[0])
        return logp_SV.log_softmax(-1)


def _commit(canvas: Canvas, chosen_S: Tensor, draft_S: Tensor, token_S: Tensor, chance_S: Tensor) -> None:
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


def _chosen(logp_SV: Tensor, masked_S: Tensor, bound: float, threshold: float | None) -> Tensor:
    if threshold is not None:
        return choose_by_confidence(logp_SV.amax(-1).exp(), masked_S, threshold)
    return choose_by_entropy(entropy(logp_SV), masked_S, bound)
