"""Runs fills of a deciding reader on a GPU: a pass reads what was typed, settled and drafted, and decides behind it.

Does what `Denoiser.run` does for one canvas whose drafts come from the context, with the same outcome. While a pass
runs, the host plans the next one; between passes it looks at brackets, the end, the deadline and the cancel flag.
"""

import time
from collections.abc import Sequence

from mercury_engine.api import FillRequest
from mercury_engine.cuda.paged_contexts import FillContext, PagedContexts, PagedStack
from mercury_engine.cuda.pass_plan import PassPlan, PassPlanner
from mercury_engine.denoising.canvas import Canvas
from mercury_engine.denoising.context_reader import ContextReader
from mercury_engine.denoising.drafting import Draft
from mercury_engine.denoising.loop import Denoiser, checked
from mercury_engine.denoising.verifier import CanvasContext
from mercury_engine.errors import Cancelled
from mercury_engine.models import batching
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.paged_reader import PagedReader
from mercury_engine.models.paged_rows import Decided
from mercury_engine.text.common_prefix import common_prefix


class VerifyingLoop:
    """Runs the loop for one model."""

    def __init__(self, reader: PagedReader, context_reader: ContextReader, denoiser: Denoiser) -> None:
        self._context_reader, self._denoiser = context_reader, denoiser
        self.reader, self.contexts = reader, PagedContexts(context_reader.cache, reader)
        self._planner = PassPlanner(denoiser)

    def takes(self, request: FillRequest, canvases: Sequence[Canvas]) -> bool:
        """Whether the fill may run here: one canvas, no writer, no adapter, no counted steps, and room in memory."""
        denoiser, adapters = self._denoiser, self._context_reader.cache.network.adapters
        counted = request.on_step is not None or request.max_steps is not None
        plain = len(canvases) == 1 and not counted and request.adapter not in adapters
        alone = denoiser.rule.decides == "reader" and not denoiser.asks_writer(request)
        return plain and alone and self.contexts.has_room()

    def run(
        self, request: FillRequest, canvas: Canvas, near: list[int], started: float
    ) -> ForwardSteps[CanvasContext | None]:
        """Read the context, which ends with `near`, and settle slots until the end, the deadline or the cancel flag.

        Returns what was read, None if the deadline came before. Raises Cancelled, and ModelCorrupt when the weights
        compute NaN.
        """
        deadline = None if request.deadline_ms is None else started + request.deadline_ms / 1e3
        pages = FillContext(self.contexts)
        try:
            prefill = self._context_reader.read_into(pages, request, near, canvas.settled)
            found = yield from batching.until(deadline, prefill)
            if found is not None and pages.stack is not None:
                yield from self._settle(request, canvas, found, pages.stack, deadline)
            return found
        finally:
            pages.close()

    def _settle(
        self, request: FillRequest, canvas: Canvas, found: CanvasContext, stack: PagedStack, deadline: float | None
    ) -> ForwardSteps[None]:
        ahead: PassPlan | None = None
        while self._denoiser.is_open(request, canvas):
            if request.cancel.is_set():
                raise Cancelled("superseded by a newer request")
            if deadline is not None and time.perf_counter() >= deadline:
                break
            ahead = yield from self._step(request, canvas, found, stack, ahead)
            if canvas.ended:
                self._denoiser.repaired(request, canvas)

    def _step(
        self, request: FillRequest, canvas: Canvas, found: CanvasContext, stack: PagedStack, ahead: PassPlan | None
    ) -> ForwardSteps[PassPlan | None]:
        """One pass: what the reader agrees with is settled.

        `ahead` is the plan that the step before made while its pass ran; returns such a plan for the next one.
        """
        tokens = [*found.near, *canvas.ids[: canvas.settled]]
        del stack.ids[min(common_prefix(stack.ids, tokens), len(tokens) - 1) :]
        yield from self.contexts.catch_up(stack, tokens[:-1])
        unread = tokens[len(stack.ids) :]
        plan = ahead
        if plan is None or not plan.suits(canvas, len(unread)):
            plan = self._planner.plan(request, canvas, found, len(unread))
        made: list[PassPlan | None] = []
        decided = yield from self.contexts.push(
            stack,
            unread,
            plan.draft.ids,
            plan.following,
            lambda: made.append(self._planner.behind(request, canvas, found, plan)),
        )
        self._accept(canvas, plan.draft, decided)
        canvas.step_done(None, canvas.settled)
        return made[0] if made else None

    def _accept(self, canvas: Canvas, draft: Draft, decided: Decided) -> None:
        for i, (token, chance) in enumerate(zip(decided.tokens, decided.chances, strict=True)):
            canvas.settle(token, checked(chance))
            canvas.count(token, draft.source if draft.agrees(i, token) else "pass")
            canvas.ended |= not canvas.spell and self._denoiser.goes_beyond(canvas)
            if canvas.ended:
                break
