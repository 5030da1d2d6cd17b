"""Runs fills of a deciding reader on a GPU: a pass reads what was typed, settled and drafted, and decides behind it.

Does what `Denoiser.run` does for one canvas whose drafts come from the context, with the same outcome. What a row may
not be followed by is known before the pass, for a row counts only if the drafts before it are accepted. The host looks
between passes at brackets, the end, the deadline and the cancel flag.
"""

import copy
import heapq
import time
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from mercury_kernels.buffers import MOST_PAIRS

from mercury_engine.api import FillRequest
from mercury_engine.cuda.paged_contexts import FillContext, PagedContexts, PagedStack
from mercury_engine.denoising.canvas import Canvas
from mercury_engine.denoising.context_reader import ContextReader
from mercury_engine.denoising.draft_choice import Draft
from mercury_engine.denoising.loop import Denoiser, checked, ngram_match
from mercury_engine.denoising.mixing import lookup_share
from mercury_engine.denoising.slot_masks import first_slot_limits
from mercury_engine.denoising.verifier import CanvasContext
from mercury_engine.errors import Cancelled
from mercury_engine.models import batching
from mercury_engine.models.arrays import IdArray, MaskArray
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.paged_reader import ROWS, PagedReader
from mercury_engine.models.paged_rows import Decided, NextToken, TokenList
from mercury_engine.text.common_prefix import common_prefix


class VerifyingLoop:
    """Runs the loop for one model."""

    def __init__(self, reader: PagedReader, context_reader: ContextReader, denoiser: Denoiser) -> None:
        self._context_reader, self._denoiser = context_reader, denoiser
        self.reader, self.contexts = reader, PagedContexts(context_reader.cache, reader)

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
        while self._denoiser.is_open(request, canvas):
            if request.cancel.is_set():
                raise Cancelled("superseded by a newer request")
            if deadline is not None and time.perf_counter() >= deadline:
                break
            yield from self._step(request, canvas, found, stack)
            if canvas.ended:
                self._denoiser.repaired(request, canvas)

    def _step(
        self, request: FillRequest, canvas: Canvas, found: CanvasContext, stack: PagedStack
    ) -> ForwardSteps[None]:
        """One pass: what the reader agrees with is settled."""
        tokens = [*found.near, *canvas.ids[: canvas.settled]]
        del stack.ids[min(common_prefix(stack.ids, tokens), len(tokens) - 1) :]
        yield from self.contexts.catch_up(stack, tokens[:-1])
        unread = tokens[len(stack.ids) :]
        room = min(self._denoiser.rule.lookahead, ROWS - len(unread), len(canvas.ids) - canvas.settled - 1)
        draft = self._denoiser.draft(request, canvas, None, max(0, room), found, None)
        following = self._following(request, canvas, found, draft.ids)
        draft = draft.first(len(following) - 1)
        decided = yield from self.contexts.push(stack, unread, draft.ids, following)
        self._accept(canvas, draft, decided)
        canvas.step_done(None, canvas.settled)

    def _accept(self, canvas: Canvas, draft: Draft, decided: Decided) -> None:
        for i, (token, chance) in enumerate(zip(decided.tokens, decided.chances, strict=True)):
            canvas.settle(token, checked(chance))
            canvas.count(draft, i, token)
            canvas.ended |= not canvas.spell and self._denoiser.goes_beyond(canvas)
            if canvas.ended:
                break

    def _following(
        self, request: FillRequest, canvas: Canvas, found: CanvasContext, draft: Sequence[int]
    ) -> list[NextToken]:
        """What may follow the settled slots and each draft token if those before are accepted.

        Ends before a row whose pairs find no room.
        """
        imagined, pairs = copy.copy(canvas), MOST_PAIRS
        imagined.ids, imagined.chances = [*canvas.ids], [*canvas.chances]
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


def _only(vocabulary: int, tokens: IdArray) -> MaskArray:
    """bool [V]: these tokens."""
    made = np.zeros(vocabulary, np.bool_)
    made[tokens] = True
    return made


def _with(hidden_V: MaskArray, tokens: IdArray | None) -> MaskArray:
    """A copy in which these tokens are hidden too."""
    made = hidden_V.copy()
    made[[] if tokens is None else tokens] = True
    return made
