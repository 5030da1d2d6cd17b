"""The writer deciding alone: slots are committed wherever on the canvas it is sure of them, and stay.

Here one step is decided in plain torch; on a GPU the same decisions are made where the canvas lies (`graphs.py`).
Tokens of a draft are judged first: those that the writer would choose stay, the others are masked.

Dimensions: S slots from the first one on that is not settled, V vocabulary with mask and end.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from mercury_engine.denoising.canvas import Canvas, Vocabulary
from mercury_engine.denoising.stopping import StoppingCriteria
from mercury_engine.denoising.unmasking import choose_by_confidence, choose_by_entropy, entropy
from mercury_engine.prompt.tokenizer import Tokenizer

NEGATIVE_INFINITY = float("-inf")

REMEMBERED_MASKS = 64
"""Limits that are remembered."""


class SlotLimits(NamedTuple):
    """What binds a slot: text it has to spell, whether it may break the line, a token that proved wrong there."""

    spell: str
    multiline: bool
    banned: int | None = None


def first_slot_limits(canvas: Canvas, multiline: bool) -> SlotLimits:
    """What binds the first slot that is not settled."""
    return SlotLimits(canvas.spell, multiline, canvas.banned.get(canvas.settled))


class WriterStep:
    """Decides for one vocabulary."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: Vocabulary, stopping: StoppingCriteria) -> None:
        self.tokenizer, self.vocabulary, self.stopping = tokenizer, vocabulary, stopping
        self._forbidden: dict[SlotLimits, Tensor] = {}

    def allowed(self, spell: str, multiline: bool) -> list[int]:
        """Tokens that go on with a text to spell, and do not break the line behind it unless they may."""
        texts = self.vocabulary.texts
        return [i for i in self.tokenizer.spelling(spell) if multiline or "\n" not in texts[i][len(spell) :]]

    def forbidden(self, limits: SlotLimits) -> Tensor:
        """bool [V]: tokens that a slot within these limits may not get."""
        if limits not in self._forbidden:
            if len(self._forbidden) >= REMEMBERED_MASKS:
                self._forbidden.clear()
            self._forbidden[limits] = self._found(limits)
        return self._forbidden[limits]

    def _found(self, limits: SlotLimits) -> Tensor:
        hidden_V = torch.zeros(len(self.vocabulary.texts) + 2, dtype=torch.bool)
        if limits.spell:
            hidden_V[:] = True
            hidden_V[self.allowed(limits.spell, limits.multiline)] = False
        elif not limits.multiline:
            hidden_V[self.stopping.breaks] = True
        hidden_V[self.stopping.ends_text] = True
        hidden_V[self.vocabulary.mask_id] = True
        if limits.banned is not None:
            hidden_V[limits.banned] = True
        return hidden_V

    def decide(
        self, canvas: Canvas, written_SV: Tensor, multiline: bool, bound: float, threshold: float | None, final: bool
    ) -> None:
        """Commit slots by one look of the writer, log-probabilities [S,V]; the last step commits all of them.

        Otherwise drafts are judged if there are any, or slots are chosen by the bound in nats or by the threshold.
        """
        logp_SV = self._permitted(canvas, written_SV, multiline)
        token_S = logp_SV.argmax(-1)
        rank, only_first = (0, canvas.choice > 0) if canvas.spell else (canvas.choice, canvas.choice > 0)
        token_S[0] = logp_SV[0].topk(rank + 1).indices[-1]
        canvas.choice = canvas.choice if canvas.spell else 0
        ids_S = torch.tensor(canvas.ids[canvas.settled :])
        masked_S = ids_S == self.vocabulary.mask_id
        draft_S = ~masked_S & torch.tensor([s not in canvas.ahead for s in range(canvas.settled, len(canvas.ids))])
        if final:
            chosen_S = masked_S | draft_S
        elif bool(draft_S.any()):
            chosen_S = draft_S & (ids_S == token_S)
        else:
            chosen_S = _chosen(logp_SV, masked_S, bound, threshold)
            if only_first:
                chosen_S = torch.arange(len(ids_S)) == 0
        chance_S = logp_SV.gather(1, token_S[:, None])[:, 0].exp()
        self._commit(canvas, chosen_S, draft_S, token_S, chance_S)

    def _permitted(self, canvas: Canvas, written_SV: Tensor, multiline: bool) -> Tensor:
        """Log-probabilities of what each slot may get, on the CPU."""
        logp_SV = written_SV.cpu().masked_fill(self.forbidden(SlotLimits("", multiline)), NEGATIVE_INFINITY)
        logp_SV[0] = (
            written_SV[0].cpu().masked_fill(self.forbidden(first_slot_limits(canvas, multiline)), NEGATIVE_INFINITY)
        )
        return logp_SV.log_softmax(-1)

    def _commit(self, canvas: Canvas, chosen_S: Tensor, draft_S: Tensor, token_S: Tensor, chance_S: Tensor) -> None:
        """Write what was chosen, mask refused drafts, and make an end marker of all behind the first one."""
        rows = zip(*(each.tolist() for each in (chosen_S, draft_S, token_S, chance_S)), strict=True)
        for slot, (chosen, draft, token, chance) in enumerate(rows, canvas.settled):
            if chosen:
                canvas.ids[slot], canvas.ahead[slot] = token, chance
            elif draft:
                canvas.ids[slot] = self.vocabulary.mask_id
        end = self.vocabulary.end_id
        if end in canvas.ids[canvas.settled :]:
            behind = range(canvas.ids.index(end, canvas.settled) + 1, len(canvas.ids))
            canvas.ids[behind.start :] = [end] * len(behind)
            canvas.ahead.update(dict.fromkeys(behind, 1.0))


def _chosen(logp_SV: Tensor, masked_S: Tensor, bound: float, threshold: float | None) -> Tensor:
    if threshold is not None:
        return choose_by_confidence(logp_SV.amax(-1).exp(), masked_S, threshold)
    return choose_by_entropy(entropy(logp_SV), masked_S, bound)
