"""Plans what a pass verifies: a draft, and what may follow each of its rows.

What a row may not be followed by is known before the pass, for a row counts only if the drafts before it are accepted.
While a pass runs, the one behind it is planned as if its whole draft were accepted.
"""

import copy
import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from mercury_kernels.buffers import MOST_PAIRS

from mercury_engine.api import FillRequest
from mercury_engine.denoising.canvas import Canvas
from mercury_engine.denoising.drafting import Draft
from mercury_engine.denoising.loop import Denoiser, ngram_match
from mercury_engine.denoising.mixing import lookup_share
from mercury_engine.denoising.slot_masks import first_slot_limits
from mercury_engine.denoising.verifier import CanvasContext
from mercury_engine.models.arrays import IdArray, MaskArray
from mercury_engine.models.paged_reader import ROWS
from mercury_engine.models.paged_rows import NextToken, TokenList


@dataclass(frozen=True, slots=True)
class PassPlan:
    """What a pass verifies."""

    settled: Sequence[int]
    """The slots behind which it goes on."""
    unread: int
    """Number of tokens that it reads in front of the draft."""
    draft: Draft
    following: Sequence[NextToken]
    """What may follow the settled slots, and each draft token if those before are accepted."""

    def suits(self, canvas: Canvas, unread: int) -> bool:
        """Whether the plan is for this state of its canvas."""
        return self.unread == unread and self.settled == canvas.ids[: canvas.settled]


class PassPlanner:
    """Plans passes for one model."""

    def __init__(self, denoiser: Denoiser) -> None:
        self._denoiser = denoiser

    def plan(self, request: FillRequest, canvas: Canvas, found: CanvasContext, unread: int) -> PassPlan:
        """The plan for a pass that reads so many tokens in front of its draft."""
        room = min(self._denoiser.rule.lookahead, ROWS - unread, len(canvas.ids) - canvas.settled - 1)
        draft = self._denoiser.draft(request, canvas, None, max(0, room), found)
        following = self._following(request, canvas, found, draft.ids)
        return PassPlan(canvas.ids[: canvas.settled], unread, draft.first(len(following) - 1), following)

    def behind(self, request: FillRequest, canvas: Canvas, found: CanvasContext, plan: PassPlan) -> PassPlan | None:
        """The plan behind a pass that accepts the whole draft and goes on as the text did before.

        None if it did not, or if the fill would end there.
        """
        imagined = _copied(canvas)
        for token in plan.draft.ids:
            imagined.settle(token, 1.0)
        repeated = ngram_match(found, imagined).draft
        if not repeated:
            return None
        imagined.settle(repeated[0], 1.0)
        imagined.steps += 1
        if imagined.settled == len(imagined.ids) or (not imagined.spell and self._denoiser.goes_beyond(imagined)):
            return None
        return self.plan(request, imagined, found, 1)

    def _following(
        self, request: FillRequest, canvas: Canvas, found: CanvasContext, draft: Sequence[int]
    ) -> list[NextToken]:
        """See `PassPlan.following`; ends before a row whose pairs find no room."""
        imagined, pairs = _copied(canvas), MOST_PAIRS
        made: list[NextToken] = []
        for token in (*draft, None):
            each = self._next_token(request, imagined, found)
            pairs -= len(each.pairs)
            if pairs < 0:
                break
            made.append(each)
            if token is not None:
                imagined.settle(token, 1.0)
        return made

    def _next_token(self, request: FillRequest, canvas: Canvas, found: CanvasContext) -> NextToken:
        """What may be the next slot of the canvas, as `Denoiser.mix` has it."""
        stop = self._denoiser.stopping.at(canvas.follows, request.multiline, self._denoiser.text(canvas))
        limits, vocabulary = first_slot_limits(canvas, request.multiline), self._denoiser.vocabulary
        hidden_V = self._denoiser.masks.hidden_tokens(limits)
        certain = stop.tokens if stop is not None and stop.is_certain and not canvas.spell else None
        name = (limits, None if certain is None else certain.tobytes())
        ban = TokenList(name, partial(_with, hidden_V[: vocabulary.mask_id], certain))
        share, pairs = self._lookup(canvas, found)
        if stop is None or hidden_V[vocabulary.end_id]:
            return NextToken(ban, None, share, pairs)
        ends = TokenList(stop.tokens.tobytes(), partial(_only, vocabulary.mask_id, stop.tokens))
        return NextToken(ban, ends, share, pairs)

    def _lookup(self, canvas: Canvas, found: CanvasContext) -> tuple[float, Mapping[int, float]]:
        """The share of the n-gram in unread text, and its tokens with their probabilities, see `mix_in_unread`."""
        if not found.ngrams.has_unread:
            return 0.0, {}
        match = ngram_match(found, canvas)
        share = lookup_share(match, self._denoiser.rule.recall)
        if share <= 0 or not match.unread:
            return 0.0, {}
        return share, dict(heapq.nlargest(MOST_PAIRS, match.unread.items(), key=lambda each: each[1]))


def _copied(canvas: Canvas) -> Canvas:
    """A canvas on which slots may be settled while the other stays as it is."""
    made = copy.copy(canvas)
    made.ids, made.chances = [*canvas.ids], [*canvas.chances]
    return made


def _only(vocabulary: int, tokens: IdArray) -> MaskArray:
    """bool [V]: these tokens."""
    made = np.zeros(vocabulary, np.bool_)
    made[tokens] = True
    return made


def _with(hidden_V: MaskArray, tokens: IdArray | None) -> MaskArray:
    """The mask in which these tokens are hidden too."""
    if tokens is None:
        return hidden_V
    made = hidden_V.copy()
    made[tokens] = True
    return made
