"""Plans what a pass verifies: a draft, and what may follow each of its rows.

What a row may not be followed by is known before the pass, for a row counts only if the drafts before it are accepted.
While a pass runs, the one after it is planned as if its whole draft were accepted.
"""

import copy
import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from mercury_kernels.buffers import MOST_PAIRS

from mercury_engine.decoding.autoregressive.drafting import Draft, Drafter
from mercury_engine.decoding.autoregressive.unread_text import lookup_share
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.options import AutoregressiveOptions
from mercury_engine.decoding.slot_masks import next_limits
from mercury_engine.models.arrays import IdArray, MaskArray
from mercury_engine.models.paged_reader import ROWS
from mercury_engine.models.paged_rows import NextToken, TokenList


@dataclass(frozen=True, slots=True)
class PassPlan:
    """What a pass verifies."""

    accepted: Sequence[int]
    """The tokens after which it goes on."""
    unread: int
    """Number of tokens that it reads in front of the draft."""
    draft: Draft
    following: Sequence[NextToken]
    """What may follow the accepted tokens, and each draft token if those before are accepted."""

    def suits(self, hypothesis: Hypothesis, unread: int) -> bool:
        """Whether the plan is for this state of its hypothesis."""
        return self.unread == unread and self.accepted == hypothesis.ids


class PassPlanner:
    """Plans passes for one model."""

    def __init__(self, rules: GapRules, options: AutoregressiveOptions) -> None:
        self._rules, self._options = rules, options

    def plan(self, hypothesis: Hypothesis, drafter: Drafter, unread: int) -> PassPlan:
        """The plan for a pass that reads so many tokens in front of its draft."""
        room = min(self._options.lookahead, ROWS - unread, hypothesis.capacity - len(hypothesis.ids) - 1)
        draft = drafter.draft(hypothesis, max(0, room))
        following = self._following(hypothesis, drafter, draft.ids)
        return PassPlan([*hypothesis.ids], unread, replace(draft, ids=draft.ids[: len(following) - 1]), following)

    def after(self, hypothesis: Hypothesis, drafter: Drafter, plan: PassPlan) -> PassPlan | None:
        """The plan after a pass that accepts the whole draft and goes on as the text did before.

        None if it did not, or if the fill would end there.
        """
        imagined = _copied(hypothesis)
        for token in plan.draft.ids:
            imagined.accept(token, 1.0)
        repeated = drafter.match(imagined).draft
        if not repeated:
            return None
        imagined.accept(repeated[0], 1.0)
        imagined.steps += 1
        if len(imagined.ids) == imagined.capacity or (not imagined.spell and self._rules.leaves_gap(imagined)):
            return None
        return self.plan(imagined, drafter, 1)

    def _following(self, hypothesis: Hypothesis, drafter: Drafter, draft: Sequence[int]) -> list[NextToken]:
        """See `PassPlan.following`; ends before a row whose pairs find no room."""
        imagined, pairs = _copied(hypothesis), MOST_PAIRS
        made: list[NextToken] = []
        for token in (*draft, None):
            each = self._next_token(imagined, drafter)
            pairs -= len(each.pairs)
            if pairs < 0:
                break
            made.append(each)
            if token is not None:
                imagined.accept(token, 1.0)
        return made

    def _next_token(self, hypothesis: Hypothesis, drafter: Drafter) -> NextToken:
        """What may be the next token, as `Speculation.next_token` has it."""
        stop = self._rules.stop_tokens(hypothesis)
        limits, vocabulary = next_limits(hypothesis), self._rules.vocabulary
        hidden_V = self._rules.masks.hidden_tokens(limits)
        certain = stop.tokens if stop is not None and stop.is_certain and not hypothesis.spell else None
        name = (limits, None if certain is None else certain.tobytes())
        ban = TokenList(name, partial(_with, hidden_V[: vocabulary.mask_id], certain))
        share, pairs = self._unread(hypothesis, drafter)
        if stop is None or hidden_V[vocabulary.end_id]:
            return NextToken(ban, None, share, pairs)
        ends = TokenList(stop.tokens.tobytes(), partial(_only, vocabulary.mask_id, stop.tokens))
        return NextToken(ban, ends, share, pairs)

    def _unread(self, hypothesis: Hypothesis, drafter: Drafter) -> tuple[float, Mapping[int, float]]:
        """The share of the n-gram in unread text, and its tokens with their probabilities, see `next_tokens`."""
        if not drafter.lookup.has_unread:
            return 0.0, {}
        match = drafter.match(hypothesis)
        share = lookup_share(match, self._options.recall)
        if share <= 0 or not match.unread:
            return 0.0, {}
        return share, dict(heapq.nlargest(MOST_PAIRS, match.unread.items(), key=lambda each: each[1]))


def _copied(hypothesis: Hypothesis) -> Hypothesis:
    """A hypothesis that may go on while the other stays as it is."""
    made = copy.copy(hypothesis)
    made.ids, made.probabilities = [*hypothesis.ids], [*hypothesis.probabilities]
    made.accepted_from = hypothesis.accepted_from.copy()
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
