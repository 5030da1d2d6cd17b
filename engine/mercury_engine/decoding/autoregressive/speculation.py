"""Speculative decoding: drafts are verified several tokens a pass, and accepted from the left while the model agrees.

A pass reads the accepted tokens and the draft as if they were typed, which gives the model's distribution after each.
The likeliest token is accepted; while it is the draft's, the next distribution counts too. So a fill is what the model
writes left to right, whatever the drafts. `next_tokens` chooses from the distributions.
"""

from collections.abc import Sequence

from mercury_engine.api import Control, FillRequest, SlotView
from mercury_engine.decoding.autoregressive.drafting import Drafters
from mercury_engine.decoding.autoregressive.next_tokens import NextPlace, NextTokens
from mercury_engine.decoding.autoregressive.verifier import Verifier
from mercury_engine.decoding.context_reader import GapContext
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.options import AutoregressiveOptions
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import Network
from mercury_engine.models.row_answers import RowAnswers


class Speculation:
    """Writes hypotheses of one model; several of one gap share their passes."""

    def __init__(self, network: Network, drafters: Drafters, rules: GapRules, options: AutoregressiveOptions) -> None:
        self._network, self._drafters, self._rules, self._options = network, drafters, rules, options

    def write(
        self, request: FillRequest, control: Control, hypotheses: Sequence[Hypothesis], context: GapContext
    ) -> ForwardSteps[None]:
        """Accept tokens after a context until all hypotheses, which begin with the same tokens, have ended."""
        drafter = yield from self._drafters.of(context, request)
        shared, verifier = len(hypotheses[0].ids), Verifier(self._network, context, hypotheses[0].ids)
        while live := [each for each in hypotheses if self._rules.is_open(request, each)]:
            drafts = [drafter.draft(each, self._options.lookahead) for each in live]
            show(control, hypotheses[0], drafts[0] if live[0] is hypotheses[0] else [])
            following = NextTokens(self._rules, drafter, self._options.recall, live, drafts)
            told = yield from verifier.ask([each.ids[shared:] for each in live], drafts, following.question)
            for hypothesis, draft, places, answers in zip(live, drafts, following.places, told, strict=True):
                self._accept(hypothesis, draft, following, places, answers)
            if len(hypotheses) == 1:
                verifier.push(hypotheses[0].ids[shared:])
                shared = len(hypotheses[0].ids)
            for hypothesis in live:
                # at `shared` no token is left to read, for the verifier may hold the last one already
                if hypothesis.ended and self._rules.repaired(control, hypothesis) and len(hypothesis.ids) <= shared:
                    shared, verifier = len(hypothesis.ids), Verifier(self._network, context, hypothesis.ids)
        show(control, hypotheses[0], [])

    def _accept(
        self,
        hypothesis: Hypothesis,
        draft: list[int],
        following: NextTokens,
        places: Sequence[NextPlace],
        told: RowAnswers,
    ) -> None:
        """Accept tokens from the left while the model agrees with the draft, and its own after that."""
        if hypothesis.foreseen is not None and hypothesis.foresees:
            hypothesis.foreseen.add(hypothesis.spell, told)
        for row, place in enumerate(places[: hypothesis.capacity - len(hypothesis.ids)]):
            token, probability, closings = following.choose(hypothesis, place, told, row)
            hypothesis.accept(token, probability, closings)
            hypothesis.ended |= not hypothesis.spell and self._rules.leaves_gap(hypothesis)
            if hypothesis.ended or draft[row : row + 1] != [token]:
                break
        hypothesis.steps += 1


def show(control: Control, hypothesis: Hypothesis, draft: Sequence[int]) -> None:
    """Report the accepted tokens and the draft to verify to whoever watches."""
    if control.on_step is not None:
        texts = hypothesis.vocabulary.texts
        control.on_step(hypothesis.view(SlotView(texts[token], "draft", 0.0) for token in draft))
