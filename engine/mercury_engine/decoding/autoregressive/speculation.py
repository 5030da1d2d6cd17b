"""Speculative decoding: drafts are verified several tokens a pass, and accepted from the left while the model agrees.

A pass reads the accepted tokens and the draft as if they were typed, which gives the model's distribution after each.
The likeliest token is accepted; while it is the draft's, the next distribution counts too. So a fill is what the model
writes left to right, whatever the drafts.

The tokens that would end the fill count as one, its end. Where unread text contains the last tokens, what follows them
there has a share in the distribution: a linear mixture (`AutoregressiveOptions.recall`).

Dimensions: V vocabulary, A tokens whose logits are asked for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise

import numpy as np
from numpy.typing import NDArray

from mercury_engine.api import Control, SlotView
from mercury_engine.decoding.autoregressive.drafting import Drafter, Drafters
from mercury_engine.decoding.autoregressive.verifier import Verifier
from mercury_engine.decoding.gap_rules import SlotLimits, StopTokens
from mercury_engine.decoding.hypothesis import Closings, Hypothesis
from mercury_engine.decoding.options import AutoregressiveOptions
from mercury_engine.kv_cache.cache import GapContext
from mercury_engine.models.arrays import FloatArray, IdArray, MaskArray
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import Network
from mercury_engine.models.row_answers import RowAnswers, RowQuestion

LARGEST_LOOKUP_SHARE = 0.9
"""Share of the n-gram's opinion for the longest matches; the model's opinion always counts."""


class Speculation:
    """Writes hypotheses of one model; several of one gap share their passes."""

    def __init__(self, network: Network, drafters: Drafters, options: AutoregressiveOptions) -> None:
        self._network, self._drafters, self._options = network, drafters, options

    def write(self, hypotheses: Sequence[Hypothesis], context: GapContext, control: Control) -> ForwardSteps[None]:
        """Accept tokens after a context until all hypotheses, which begin with the same tokens, have ended."""
        first = hypotheses[0]
        drafter = yield from self._drafters.of(context, first.request)
        shared, verifier = len(first.ids), Verifier(self._network, context, first.ids)
        while live := [each for each in hypotheses if each.is_open]:
            drafts = [drafter.draft(each, self._options.lookahead) for each in live]
            show(control, first, drafts[0] if live[0] is first else [])
            following = NextTokens(live, drafts, drafter, self._options.recall)
            told = yield from verifier.ask([each.ids[shared:] for each in live], drafts, following.question)
            for number, answers in enumerate(told):
                following.accept(number, answers)
            if len(hypotheses) == 1:
                verifier.push(first.ids[shared:])
                shared = len(first.ids)
            for hypothesis in live:
                # at `shared` no token is left to read, for the verifier may hold the last one already
                if hypothesis.ended and hypothesis.repaired(control.check) and len(hypothesis.ids) <= shared:
                    shared, verifier = len(hypothesis.ids), Verifier(self._network, context, hypothesis.ids)
        show(control, first, [])


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
        self, hypotheses: Sequence[Hypothesis], drafts: Sequence[list[int]], drafter: Drafter, recall: float
    ) -> None:
        self._hypotheses, self._drafts, self._drafter, self._recall = hypotheses, drafts, drafter, recall
        self._rules = rules = hypotheses[0].rules
        self._hidden: dict[tuple[SlotLimits, StopTokens | None], MaskArray] = {}
        self.places = [self._after(each, draft) for each, draft in zip(hypotheses, drafts, strict=True)]
        """Of each hypothesis those after its accepted tokens and after every token of its draft."""
        places = [*chain(*self.places)]
        stops = [*dict.fromkeys(each.stop for each in places if each.stop is not None)]
        self._unread = sorted({token for each in places for token in each.unread})
        """The tokens of unread text; their logits come last."""
        asked = [rules.closers, *(stop.tokens for stop in stops), np.array(self._unread, np.int64)]
        ends = pairwise(accumulate(map(len, asked)))
        self._columns = {stop: slice(*around) for stop, around in zip(stops, ends, strict=False)}
        """Where the logits of stop tokens are."""
        draws = any(each.rank or each.foresees for each in hypotheses)
        hidden = [each.hidden_V for each in places]
        self.question = RowQuestion.of(hidden, len(rules.texts), draws, np.concatenate(asked))

    def accept(self, number: int, told: RowAnswers) -> None:
        """Accept tokens of a hypothesis while the model agrees with its draft, and the model's own after that."""
        hypothesis, draft, places = self._hypotheses[number], self._drafts[number], self.places[number]
        if hypothesis.foreseen is not None and hypothesis.foresees:
            hypothesis.foreseen.add(hypothesis.spell, told)
        for row, place in enumerate(places[: hypothesis.capacity - len(hypothesis.ids)]):
            token, probability, closings = self.choose(hypothesis, place, told, row)
            hypothesis.accept(token, probability, closings)
            hypothesis.ended |= not hypothesis.spell and hypothesis.leaves_gap
            if hypothesis.ended or draft[row : row + 1] != [token]:
                break
        hypothesis.steps += 1

    def choose(
        self, hypothesis: Hypothesis, place: NextPlace, told: RowAnswers, row: int
    ) -> tuple[int, float, Closings]:
        """The likeliest token there, or the one of the hypothesis's rank; its probability, and what it closes."""
        whole, end_id = float(told.whole_W[row]), self._rules.end_id
        allowed = place.keep * math.exp(float(told.log_sum_W[row]) - whole)
        rank = hypothesis.take_rank()
        options = self._options(place, told, row, whole, rank)
        allowed += sum(share for token, share in place.unread.items() if not place.hidden_V[token])
        if place.stop is not None and not place.hidden_V[end_id]:
            logits_A = told.asked_WA[row, self._columns[place.stop]]
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
        stop, limits = hypothesis.stop_tokens(), hypothesis.limits
        certain = stop if stop is not None and stop.is_certain and not hypothesis.spell else None
        if (limits, certain) not in self._hidden:
            hidden_V = self._rules.hidden_tokens(limits)
            if certain is not None:
                hidden_V = hidden_V.copy()
                hidden_V[certain.tokens] = True
            self._hidden[limits, certain] = hidden_V
        unread, share = dict[int, float](), 0.0
        if self._recall and self._drafter.lookup.has_unread:
            match = self._drafter.match(hypothesis.ids)
            if match.unread and match.length > 1:
                share = min(LARGEST_LOOKUP_SHARE, self._recall * (match.length - 1))
                unread = {token: share * chance for token, chance in match.unread.items()}
        return NextPlace(self._hidden[limits, certain], stop, unread, 1 - share)

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


def show(control: Control, hypothesis: Hypothesis, draft: Sequence[int]) -> None:
    """Report the accepted tokens and the draft to verify to whoever watches."""
    if control.on_step is not None:
        texts = hypothesis.rules.texts
        control.on_step(hypothesis.view(SlotView(texts[token], "draft", 0.0) for token in draft))
