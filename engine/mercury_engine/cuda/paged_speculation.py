"""Speculative decoding on a GPU: a pass reads what was typed, accepted and drafted, and decides what follows.

Does what `Speculation.write` does for one hypothesis, with the same outcome. While a pass runs, the host plans the next
one; between passes it looks at brackets and the end.
"""

from collections.abc import Sequence
from contextlib import suppress

from mercury_engine.api import Control, FillRequest
from mercury_engine.cuda.paged_contexts import FillContext, PagedContexts, PagedStack
from mercury_engine.cuda.pass_plan import PassPlan, PassPlanner
from mercury_engine.decoding.autoregressive.drafting import Draft, Drafter
from mercury_engine.decoding.autoregressive.lookups import Lookups
from mercury_engine.decoding.context_reader import ContextReader, GapContext
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.options import AutoregressiveOptions
from mercury_engine.models.batching import DeadlineReached, ForwardSteps
from mercury_engine.models.paged_reader import PagedReader
from mercury_engine.models.paged_rows import Decided
from mercury_engine.text.common_prefix import common_prefix


class PagedSpeculation:
    """Implements `autoregressive.decoder.SpeculationOnGpu`."""

    def __init__(
        self, reader: PagedReader, contexts: ContextReader, rules: GapRules, options: AutoregressiveOptions
    ) -> None:
        self._context_reader, self._rules, self._lookups = contexts, rules, Lookups(contexts.tokenizer)
        self.reader, self.contexts = reader, PagedContexts(contexts.cache, reader)
        self._planner = PassPlanner(rules, options)

    def takes(self, request: FillRequest, control: Control, hypotheses: Sequence[Hypothesis]) -> bool:
        """Whether the fill may run here: one hypothesis that ends itself, no adapter, no watched or counted steps, room
        in memory.
        """
        counted = control.on_step is not None or request.max_steps is not None
        adapted = request.adapter in self._context_reader.cache.network.adapters
        is_plain = len(hypotheses) == 1 and not hypotheses[0].writes_on
        return is_plain and not counted and not adapted and self.contexts.has_room()

    def write(
        self, request: FillRequest, control: Control, hypotheses: Sequence[Hypothesis], near: list[int]
    ) -> ForwardSteps[GapContext | None]:
        """See `Speculation.write`."""
        context: GapContext | None = None
        pages = FillContext(self.contexts)
        try:
            with suppress(DeadlineReached):
                context = yield from self._context_reader.read(request, near, pages)
                drafter = Drafter(context, (yield from self._lookups.of(context.far, request)))
                assert pages.stack is not None
                yield from self._speculate(request, control, hypotheses[0], context, drafter, pages.stack)
        finally:
            pages.close()
        return context

    def forget(self) -> None:
        """Free the pages of everything that no fill uses."""
        self.contexts.forget()

    def _speculate(
        self,
        request: FillRequest,
        control: Control,
        hypothesis: Hypothesis,
        context: GapContext,
        drafter: Drafter,
        stack: PagedStack,
    ) -> ForwardSteps[None]:
        ahead: PassPlan | None = None
        while self._rules.is_open(request, hypothesis):
            ahead = yield from self._step(hypothesis, context, drafter, stack, ahead)
            if hypothesis.ended:
                self._rules.repaired(control, hypothesis)

    def _step(
        self, hypothesis: Hypothesis, context: GapContext, drafter: Drafter, stack: PagedStack, ahead: PassPlan | None
    ) -> ForwardSteps[PassPlan | None]:
        """One pass: what the model agrees with is accepted.

        `ahead` is the plan that the step before made while its pass ran; returns such a plan for the next one.
        """
        tokens = [*context.near, *hypothesis.ids]
        del stack.ids[min(common_prefix(stack.ids, tokens), len(tokens) - 1) :]
        yield from self.contexts.catch_up(stack, tokens[:-1])
        unread = tokens[len(stack.ids) :]
        plan = ahead
        if plan is None or not plan.suits(hypothesis, len(unread)):
            plan = self._planner.plan(hypothesis, drafter, len(unread))
        made: list[PassPlan | None] = []
        decided = yield from self.contexts.push(
            stack,
            unread,
            plan.draft.ids,
            plan.following,
            lambda: made.append(self._planner.after(hypothesis, drafter, plan)),
        )
        self._accept(hypothesis, plan.draft, decided)
        hypothesis.steps += 1
        return made[0] if made else None

    def _accept(self, hypothesis: Hypothesis, draft: Draft, decided: Decided) -> None:
        for place, (token, probability) in enumerate(zip(decided.tokens, decided.probabilities, strict=True)):
            hypothesis.accept(token, probability, "repeat" if draft.agrees(place, token) else "pass")
            hypothesis.ended |= not hypothesis.spell and self._rules.leaves_gap(hypothesis)
            if hypothesis.ended:
                break
