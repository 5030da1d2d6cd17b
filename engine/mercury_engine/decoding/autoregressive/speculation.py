"""Speculative decoding: drafts are verified several tokens a pass, and accepted from the left while the model agrees.

A pass reads the accepted tokens and the draft as if they were typed, which gives the model's distribution after each.
The likeliest token is accepted; while it is the draft's, the next distribution counts too. So a fill is what the model
writes left to right, whatever the drafts. Where text that was not read contains the last tokens, what follows them
there has a share in the distribution (`AutoregressiveOptions.recall`).

Dimensions: S tokens of a draft and one more, V vocabulary with mask and end.
"""

import math
from collections.abc import Sequence
from contextlib import suppress

from mercury_engine.api import Control, FillRequest, SlotView, Source
from mercury_engine.decoding.autoregressive.drafting import Draft, Drafter
from mercury_engine.decoding.autoregressive.lookups import Lookups
from mercury_engine.decoding.autoregressive.unread_text import mix_in_unread
from mercury_engine.decoding.autoregressive.verifier import Verifier
from mercury_engine.decoding.context_reader import ContextReader, GapContext
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.options import AutoregressiveOptions
from mercury_engine.decoding.slot_masks import next_limits
from mercury_engine.models.arrays import Array, beside, best, log_softmax, logsumexp, namespace, replaced
from mercury_engine.models.batching import DeadlineReached, ForwardSteps
from mercury_engine.models.network import Network


class Speculation:
    """Writes hypotheses of one model; several of one gap share their passes."""

    def __init__(
        self,
        network: Network,
        contexts: ContextReader,
        lookups: Lookups,
        rules: GapRules,
        options: AutoregressiveOptions,
    ) -> None:
        self._network, self._contexts, self._lookups = network, contexts, lookups
        self._rules, self._options = rules, options

    def write(
        self, request: FillRequest, control: Control, hypotheses: Sequence[Hypothesis], near: list[int]
    ) -> ForwardSteps[GapContext | None]:
        """Read the context after `near` and accept tokens until all hypotheses have ended, or time is up.

        All hypotheses begin with the same tokens. Returns the context; None if time was up before it was read.
        """
        context: GapContext | None = None
        with suppress(DeadlineReached):
            context = yield from self._contexts.read(request, near)
            yield from self.write_after(request, control, hypotheses, context)
        return context

    def write_after(
        self, request: FillRequest, control: Control, hypotheses: Sequence[Hypothesis], context: GapContext
    ) -> ForwardSteps[None]:
        """Accept tokens after a context until all hypotheses have ended."""
        drafter = Drafter(context, (yield from self._lookups.of(context.far, request)))
        yield from self._speculate(request, control, hypotheses, context, drafter)

    def _speculate(
        self,
        request: FillRequest,
        control: Control,
        hypotheses: Sequence[Hypothesis],
        context: GapContext,
        drafter: Drafter,
    ) -> ForwardSteps[None]:
        shared = len(hypotheses[0].ids)
        verifier = self._verifier(context, hypotheses[0].ids)
        while live := [each for each in hypotheses if self._rules.is_open(request, each)]:
            drafts = [drafter.draft(each, self._options.lookahead) for each in live]
            show(control, hypotheses[0], drafts[0] if live[0] is hypotheses[0] else Draft())
            read = yield from verifier.verify([each.ids[shared:] for each in live], [draft.ids for draft in drafts])
            for hypothesis, draft, read_SV in zip(live, drafts, read, strict=True):
                self._accept(hypothesis, draft, read_SV, drafter)
                hypothesis.steps += 1
            if len(hypotheses) == 1:
                verifier.push(hypotheses[0].ids[shared:])
                shared = len(hypotheses[0].ids)
            for hypothesis in live:
                # at `shared` no token is left to read, for the verifier may hold the last one already
                if hypothesis.ended and self._rules.repaired(control, hypothesis) and len(hypothesis.ids) <= shared:
                    shared = len(hypothesis.ids)
                    verifier = self._verifier(context, hypothesis.ids)
        show(control, hypotheses[0], Draft())

    def next_token(self, hypothesis: Hypothesis, read_V: Array) -> Array:
        """Log-probabilities [V] of the next token; the end's is the probability of the stop tokens."""
        stop = self._rules.stop_tokens(hypothesis)
        end = -math.inf if stop is None else logsumexp(read_V[beside(stop.tokens, read_V)])
        xp = namespace(read_V)
        logits_V = xp.concatenate((read_V, xp.asarray([-math.inf, end], dtype=read_V.dtype, device=read_V.device)))
        if stop is not None and stop.is_certain and not hypothesis.spell:
            logits_V = replaced(logits_V, stop.tokens, -math.inf)
        return log_softmax(self._rules.masks.apply(next_limits(hypothesis), logits_V))

    def _verifier(self, context: GapContext, accepted: Sequence[int]) -> Verifier:
        """A verifier that holds the tokens that all hypotheses have accepted."""
        verifier = Verifier.after(self._network, context)
        verifier.push(accepted)
        return verifier

    def _accept(self, hypothesis: Hypothesis, draft: Draft, read_SV: Sequence[Array], drafter: Drafter) -> None:
        """Accept tokens from the left while the model agrees with the draft, and its own after that."""
        for place, read_V in enumerate(read_SV[: hypothesis.capacity - len(hypothesis.ids)]):
            logp_V = self.next_token(hypothesis, self._with_unread(read_V, drafter, hypothesis))
            token = best(logp_V, hypothesis.take_rank())
            agreed = draft.agrees(place, token)
            closings = self._rules.closings(hypothesis, token, logp_V)
            source: Source = "repeat" if agreed else "pass"
            hypothesis.accept(token, math.exp(float(logp_V[token])), source, closings)
            hypothesis.ended |= not hypothesis.spell and self._rules.leaves_gap(hypothesis)
            if hypothesis.ended or not agreed:
                break

    def _with_unread(self, read_V: Array, drafter: Drafter, hypothesis: Hypothesis) -> Array:
        if not drafter.lookup.has_unread:
            return read_V
        return mix_in_unread(read_V, drafter.match(hypothesis), self._options.recall)


def show(control: Control, hypothesis: Hypothesis, draft: Draft) -> None:
    """Report the accepted tokens, and the draft that is about to be verified, to whoever watches."""
    if control.on_step is not None:
        texts = hypothesis.vocabulary.texts
        control.on_step(hypothesis.view(SlotView(texts[token], "draft", 0.0) for token in draft.ids))
