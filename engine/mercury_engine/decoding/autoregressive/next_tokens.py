"""The next token of a hypothesis, from what a pass told: which one is chosen, how sure it is, and what it closes.

The tokens that would end the fill count as one, its end. Where unread text contains the last tokens, what follows them
there has a share in the distribution: a linear mixture (`AutoregressiveOptions.recall`).

Dimensions: V vocabulary, A tokens whose logits are asked for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from mercury_engine.decoding.autoregressive.drafting import Drafter
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Closings, Hypothesis, SlotLimits
from mercury_engine.decoding.stopping import StopTokens
from mercury_engine.models.arrays import FloatArray, IdArray, MaskArray
from mercury_engine.models.row_answers import RowAnswers, RowQuestion

LARGEST_LOOKUP_SHARE = 0.9
"""Share of the n-gram's opinion for the longest matches; the model's opinion always counts."""


@dataclass(frozen=True, slots=True)
class NextPlace:
    """The place of a next token: what may stand there, and the opinion of unread text."""

    hidden_V: MaskArray
    """Tokens that it may not get, with mask and end."""
    stop: StopTokens | None
    """The tokens that would end the fill."""
    unread: dict[int, float]
    """The share of tokens in the mixture, from the n-gram lookup."""
    keep: float
    """The share of the model."""


class NextTokens:
    """The next tokens of one pass: what is asked about them, and the choice at each."""

    def __init__(
        self,
        rules: GapRules,
        drafter: Drafter,
        recall: float,
        hypotheses: Sequence[Hypothesis],
        drafts: Sequence[list[int]],
    ) -> None:
        self._rules, self._drafter, self._recall = rules, drafter, recall
        self._hidden: dict[tuple[SlotLimits, int], MaskArray] = {}
        self.places = [self._after(each, draft) for each, draft in zip(hypotheses, drafts, strict=True)]
        """Of each hypothesis those after its accepted tokens and after every token of its draft."""
        places, asked, at = [*chain(*self.places)], [rules.closers], len(rules.closers)
        self._columns = dict[int, slice]()
        """Where the logits of stop tokens are, by `id`."""
        for stop in {id(each.stop): each.stop for each in places}.values():
            if stop is not None:
                self._columns[id(stop)] = slice(at, at + len(stop.tokens))
                asked.append(stop.tokens)
                at += len(stop.tokens)
        self._unread = sorted({token for each in places for token in each.unread})
        """The tokens of unread text; their logits come last."""
        asked.append(np.array(self._unread, np.int64))
        draws = any(each.rank or each.foresees for each in hypotheses)
        hidden = [each.hidden_V for each in places]
        self.question = RowQuestion.of(hidden, len(rules.vocabulary.texts), draws, np.concatenate(asked))

    def choose(
        self, hypothesis: Hypothesis, place: NextPlace, told: RowAnswers, row: int
    ) -> tuple[int, float, Closings]:
        """The likeliest token there, or the one of the hypothesis's rank; its probability, and what it closes."""
        whole, end_id = float(told.whole_W[row]), self._rules.vocabulary.end_id
        allowed = place.keep * math.exp(float(told.log_sum_W[row]) - whole)
        rank = hypothesis.take_rank()
        options = self._options(place, told, row, whole, rank)
        allowed += sum(share for token, share in place.unread.items() if not place.hidden_V[token])
        if place.stop is not None and not place.hidden_V[end_id]:
            logits_A = told.asked_WA[row, self._columns[id(place.stop)]]
            options[end_id] = float(self._mixed(place, place.stop.tokens, logits_A, whole).sum())
            allowed += options[end_id]
        token = sorted(options, key=lambda each: (-options[each], each))[min(rank, len(options) - 1)]
        probability = options[token] / allowed if allowed else math.nan
        closings = self._closings(hypothesis, place, token, told.asked_WA[row], whole, allowed)
        return token, probability, closings

    def _after(self, hypothesis: Hypothesis, draft: list[int]) -> list[NextPlace]:
        imagined = hypothesis.copy()
        found = [self._place(imagined)]
        for token in draft:
            imagined.accept(token, 1.0)
            found.append(self._place(imagined))
        return found

    def _place(self, hypothesis: Hypothesis) -> NextPlace:
        stop, limits = self._rules.stop_tokens(hypothesis), hypothesis.limits
        certain = stop is not None and stop.is_certain and not hypothesis.spell
        key = limits, id(stop) if certain else 0
        if key not in self._hidden:
            hidden_V = self._rules.hidden_tokens(limits)
            if stop is not None and certain:
                hidden_V = hidden_V.copy()
                hidden_V[stop.tokens] = True
            self._hidden[key] = hidden_V
        unread, share = dict[int, float](), 0.0
        if self._recall and self._drafter.lookup.has_unread:
            match = self._drafter.match(hypothesis.ids)
            if match.unread and match.length > 1:
                share = min(LARGEST_LOOKUP_SHARE, self._recall * (match.length - 1))
                unread = {token: share * chance for token, chance in match.unread.items()}
        return NextPlace(self._hidden[key], stop, unread, 1 - share)

    def _options(self, place: NextPlace, told: RowAnswers, row: int, whole: float, rank: int) -> dict[int, float]:
        """The probabilities, before banned tokens are left out, of tokens among which the chosen one is."""
        tokens, logits = told.token_W[row : row + 1], told.logit_W[row : row + 1]
        if rank:
            tokens, logits = told.candidate_WK[row], told.candidate_logit_WK[row]
        options = {
            token: place.keep * math.exp(logit - whole)
            for token, logit in zip(tokens.tolist(), logits.tolist(), strict=True)
            if logit > -math.inf or not rank
        }
        first = told.asked_WA.shape[1] - len(self._unread)
        for token, share in place.unread.items():
            if not place.hidden_V[token]:
                logit = float(told.asked_WA[row, first + self._unread.index(token)])
                options[token] = place.keep * math.exp(logit - whole) + share
        return options

    def _mixed(self, place: NextPlace, tokens: IdArray, logits: FloatArray, whole: float) -> NDArray[np.float64]:
        """Probabilities of tokens, before banned ones are left out."""
        values = place.keep * np.exp(logits.astype(np.float64) - whole)
        for token, share in place.unread.items():
            values[tokens == token] += share
        return values

    def _closings(
        self, hypothesis: Hypothesis, place: NextPlace, token: int, logits_A: FloatArray, whole: float, allowed: float
    ) -> Closings:
        """What the token closes, if it is free to."""
        closers = self._rules.closers
        starts = [] if hypothesis.spell else self._rules.closing_starts(token)
        if not starts:
            return ()
        values = self._mixed(place, closers, logits_A[: len(closers)], whole) / allowed
        values[place.hidden_V[closers]] = 0
        return tuple((start, float(values[self._rules.starting(start)].sum())) for start in starts)
