"""Drafts: the tokens that the reader verifies in a step, and the guesses that stay on the canvas behind them.

Dimensions: S slots, V vocabulary with mask and end.
"""

from dataclasses import dataclass, field

import numpy as np

from mercury_engine.api import Source
from mercury_engine.denoising.canvas import Canvas
from mercury_engine.denoising.rule import DenoisingRule
from mercury_engine.denoising.unmasking import choose_by_confidence, choose_by_entropy, entropy
from mercury_engine.models.arrays import Array, MaskArray, namespace, on_host

SLOTS_BEHIND_END = 4
"""Slots kept behind a drafted end marker, in case it comes too early."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens to verify, from one source."""

    ids: list[int] = field(default_factory=list)
    source: Source = "repeat"
    is_whole: bool = False
    """Whether an end marker follows."""

    def agrees(self, place: int, token: int) -> bool:
        """Whether its token at this place is this one."""
        return place < len(self.ids) and self.ids[place] == token

    def first(self, tokens: int) -> "Draft":
        """The first tokens of it."""
        return Draft(self.ids[:tokens], self.source)


def before_end(ids: list[int], end_id: int) -> tuple[list[int], bool]:
    """The tokens up to an end marker, and whether there is one."""
    return (ids[: ids.index(end_id)], True) if end_id in ids else (ids, False)


def keep_drafts(rule: DenoisingRule, canvas: Canvas, open_SV: Array) -> None:
    """Write the surest guesses for the open slots onto the canvas and mask the others again.

    `open_SV` are the writer's log-probabilities of the slots that are not settled. The first one stays masked: the
    mixture decides it in the next step.
    """
    if len(open_SV) < 2:
        return
    vocabulary, best = canvas.vocabulary, open_SV.argmax(-1).tolist()
    kept_S = sure_guesses(rule, open_SV)
    kept_S[0] = False
    kept = kept_S.tolist()
    for i, token in enumerate(best):
        canvas.ids[canvas.settled + i] = token if kept[i] else vocabulary.mask_id
    ends = [i for i, token in enumerate(best) if kept[i] and token == vocabulary.end_id]
    if ends:  # slots far behind a sure end marker cost time and are end markers too
        canvas.ids = canvas.ids[: canvas.settled + ends[0] + SLOTS_BEHIND_END]


def sure_guesses(rule: DenoisingRule, open_SV: Array) -> MaskArray:
    """bool [S]: slots whose best guess may stay as a draft, by the threshold if there is one, else by the bound."""
    masked_S = np.ones(len(open_SV), np.bool_)
    if rule.threshold is not None:
        confidence_S = np.exp(on_host(namespace(open_SV).amax(open_SV, -1)))
        return choose_by_confidence(confidence_S, masked_S, rule.threshold) & (confidence_S >= rule.threshold)
    entropy_S = entropy(open_SV)
    entropy_S[0] = float("inf")
    return choose_by_entropy(entropy_S, masked_S, rule.bound) & (entropy_S <= rule.bound)
