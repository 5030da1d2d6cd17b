"""The denoising loop: settles the slots of a canvas from the left, with the reader verifying the writer's drafts.

In each step the writer sees the whole canvas once and drafts every open slot; or n-gram lookup drafts
(`DenoisingRule.drafts`). The reader then reads the settled slots and the draft behind them, as if they were typed.
Slots are settled from the left while the mixture of both opinions agrees with the draft, so one step may settle
several tokens. Behind a draft, the writer's opinion is still the one from the start of the step, made without the
slots settled since. The writer's drafts further right stay on the canvas, open to revision, when the entropy bound
accepts them. Where unread text contains the last tokens, what follows them there has a share in the reader's opinion
(`DenoisingRule.recall`).

Where the writer decides (`DenoisingRule.decides`), a step is one pass of the writer (`writer_step.py`).

Dimensions: S slots, V vocabulary with mask and end.
"""

import math
import time

from mercury_engine.api import FillRequest
from mercury_engine.denoising.calibration import Calibration
from mercury_engine.denoising.canvas import Canvas, Vocabulary
from mercury_engine.denoising.drafting import Draft, before_end, keep_drafts
from mercury_engine.denoising.mixing import mix_in_unread, mix_opinions
from mercury_engine.denoising.ngram_lookup import NgramMatch
from mercury_engine.denoising.rule import DenoisingRule
from mercury_engine.denoising.slot_masks import SlotLimits, SlotMasks, first_slot_limits
from mercury_engine.denoising.stopping import StoppingCriteria, find_end, first_line_end
from mercury_engine.denoising.verifier import CanvasContext, Verifier
from mercury_engine.denoising.writer_step import WriterStep
from mercury_engine.errors import Cancelled, ModelCorrupt
from mercury_engine.models.arrays import Array, best, log_softmax, namespace, parted, replaced
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import Network, packed
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_engine.text.thought import thought_end
from mercury_engine.worth import typed_characters

MOST_CHARS_AHEAD = 12
"""A fill goes on while a text longer by so many characters, as sure as what is settled, would be worth showing.

In 3,941 replayed keystrokes this keeps 99 % of the characters saved and takes 6 % more steps than the fixed gate before
it; without a bound it would be 59 %.
"""


class Denoiser:
    """Runs the loop for one model. Without a writer, all drafts come from the context."""

    def __init__(
        self,
        reader: Network,
        writer: Network | None,
        tokenizer: Tokenizer,
        rule: DenoisingRule,
        calibration: Calibration | None = None,
        has_markers: bool = False,
    ) -> None:
        self.reader, self.writer, self.tokenizer, self.rule = reader, writer, tokenizer, rule
        self.calibration = calibration or Calibration()
        texts = tokenizer.texts + [""] * (reader.config.vocab_size - tokenizer.size)  # unused rows of the embedding
        self.vocabulary = Vocabulary(texts, reader.config.mask_id, reader.config.end_id)
        self.stopping = StoppingCriteria(tokenizer, texts, has_markers)
        self.masks = SlotMasks(tokenizer, self.vocabulary, self.stopping)
        self.writer_step = WriterStep(self.masks)

    def run(
        self, request: FillRequest, canvases: list[Canvas], canvas_context: CanvasContext, started: float
    ) -> ForwardSteps[None]:
        """Settle slots until the end, the deadline or the cancel flag.

        All canvases begin with the same settled slots. The deadline counts from `started`, a time of
        `time.perf_counter`. Raises Cancelled, and ModelCorrupt when the weights compute NaN.
        """
        verifier = self._verifier(canvas_context, canvases[0])
        while live := [c for c in canvases if self.is_open(request, c)]:
            if request.cancel.is_set():
                raise Cancelled("superseded by a newer request")
            if request.deadline_ms is not None and (time.perf_counter() - started) * 1e3 >= request.deadline_ms:
                break
            yield from self._step(request, live, canvas_context, verifier)
            if len(canvases) == 1:
                verifier.push(live[0].ids[canvas_context.settled : live[0].settled])
                canvas_context.settled = live[0].settled
            for canvas in live:
                if canvas.ended and self.repaired(request, canvas) and canvas.settled < canvas_context.settled:
                    canvas_context.settled = canvas.settled
                    verifier = self._verifier(canvas_context, canvas)

    def _verifier(self, canvas_context: CanvasContext, canvas: Canvas) -> Verifier:
        """A verifier that holds the settled slots that all canvases share."""
        verifier = Verifier.behind(self.reader, canvas_context)
        verifier.push(canvas.ids[: canvas_context.settled])
        return verifier

    def repaired(self, request: FillRequest, canvas: Canvas) -> bool:
        """Whether slots of a finished canvas were opened again because its text breaks the syntax."""
        wrong = request.check(self.text(canvas)) if request.check else None
        if wrong is not None:
            canvas.reopen(wrong)
        return wrong is not None

    def text(self, canvas: Canvas, slots: int | None = None) -> str:
        """The text that the settled slots put behind the cursor, up to where it leaves the gap.

        `slots`: the text of only the first so many slots.
        """
        whole = self.tokenizer.decode(canvas.ids[canvas.known : canvas.settled if slots is None else slots])
        text = whole[len(canvas.begun) :] if whole.startswith(canvas.begun) else ""
        return text[: _end(text, canvas)]

    def goes_beyond(self, canvas: Canvas) -> bool:
        """Whether the last token continues behind the gap, breaks its only line, or begins another thought."""
        whole = self.tokenizer.decode(canvas.ids[canvas.known : canvas.settled])
        return _end(whole[len(canvas.begun) :], canvas) is not None

    def is_open(self, request: FillRequest, canvas: Canvas) -> bool:
        """Whether another step makes sense."""
        if canvas.ended or canvas.settled >= len(canvas.ids) or self._is_hopeless(request, canvas):
            return False
        return request.max_steps is None or canvas.steps < request.max_steps

    def _is_hopeless(self, request: FillRequest, canvas: Canvas) -> bool:
        """Whether nothing that begins with the settled slots can be worth showing, or is sure enough."""
        if canvas.confidence < self.calibration.raw(request.give_up_below):
            return True
        if request.worth is None:
            return False
        longest = typed_characters(self.text(canvas)) + MOST_CHARS_AHEAD
        return canvas.confidence < self.calibration.raw(request.worth.least_chance(longest))

    def advance(self, canvas: Canvas) -> None:
        """Settle committed slots from the left; the slots behind a part of a word to spell are written again."""
        while not canvas.ended and canvas.settled in canvas.committed:
            chance = checked(canvas.committed.pop(canvas.settled))
            canvas.settle(canvas.ids[canvas.settled], chance)
            if canvas.spell:
                canvas.write_again()
            else:
                canvas.ended |= self.goes_beyond(canvas)

    def write(
        self, canvases: list[Canvas], canvas_context: CanvasContext, window: int | None = None
    ) -> list[Array | None]:
        """The writer's log-probabilities [S,V] for the open slots within the window of each canvas."""
        if self.writer is None:
            return [None] * len(canvases)
        window = window or self.rule.window
        rows = [[canvas_context.last, *c.ids[: c.settled + window]] for c in canvases]
        ids_R, packing = packed(rows)
        context = canvas_context.context
        hidden_RC = self.writer.write_canvases(
            ids_R, context.before, context.after, canvas_context.ends, packing if len(rows) > 1 else None
        )
        opened = [part[c.settled : -1] for part, c in zip(parted(hidden_RC, rows), canvases, strict=True)]
        logp = self.writer.writer_log_probabilities(namespace(hidden_RC).concatenate(opened))
        return parted(logp, opened)

    def mix(
        self, request: FillRequest, canvas: Canvas, written_V: Array | None, read_V: Array, drafts_before: int
    ) -> Array:
        """Log-probabilities [V] of the next slot by both opinions; `drafts_before` slots are new to the writer."""
        stop = self.stopping.at(canvas.follows, request.multiline, self.text(canvas))
        mixed_V = mix_opinions(self.rule, stop, written_V, read_V, is_first=drafts_before == 0)
        if stop is not None and stop.is_certain and not canvas.spell:
            mixed_V = replaced(mixed_V, stop.tokens, -math.inf)
        return log_softmax(self.masks.apply(first_slot_limits(canvas, request.multiline), mixed_V))

    def _step(
        self, request: FillRequest, live: list[Canvas], canvas_context: CanvasContext, verifier: Verifier
    ) -> ForwardSteps[None]:
        """One pass of the writer and one of the reader over all canvases; what they agree on is settled."""
        if self.rule.decides == "writer":
            self._writer_decides(request, live, canvas_context)
            return
        written = self.write(live, canvas_context) if self.asks_writer(request) else [None] * len(live)
        is_last_step = _is_last_step(request, live[0])
        most = self.rule.window if is_last_step else self.rule.lookahead
        drafts = [self.draft(request, c, w, most, canvas_context) for c, w in zip(live, written, strict=True)]
        settled = [c.ids[canvas_context.settled : c.settled] for c in live]
        read = yield from verifier.verify(settled, [draft.ids for draft in drafts])
        for canvas, written_SV, draft, read_SV in zip(live, written, drafts, read, strict=True):
            offset = canvas.settled
            self._accept(request, canvas, canvas_context, written_SV, draft, read_SV, is_last_step)
            canvas.ended |= is_last_step and draft.is_whole
            if written_SV is not None and not canvas.ended:
                keep_drafts(self.rule, canvas, written_SV[canvas.settled - offset :])
            canvas.step_done(written_SV, offset)

    def _writer_decides(self, request: FillRequest, live: list[Canvas], canvas_context: CanvasContext) -> None:
        """One pass of the writer over all canvases; the slots that it is sure of are committed."""
        rule = self.rule
        written = self.write(live, canvas_context, max(len(canvas.ids) for canvas in live))
        for canvas, written_SV in zip(live, written, strict=True):
            assert written_SV is not None, "no writer that could decide"
            offset, is_last_step = canvas.settled, _is_last_step(request, canvas)
            self.writer_step.decide(canvas, written_SV, request.multiline, rule.bound, rule.threshold, is_last_step)
            self.advance(canvas)
            canvas.step_done(written_SV, offset)

    def asks_writer(self, request: FillRequest) -> bool:
        is_shown = request.on_step is not None or request.max_steps is not None
        return self.writer is not None and (is_shown or self.rule.drafts == "writer")

    def draft(
        self,
        request: FillRequest,
        canvas: Canvas,
        written_SV: Array | None,
        most: int,
        canvas_context: CanvasContext,
    ) -> Draft:
        """The draft for the first open slots, at most `most` tokens.

        If the first slot has to spell text, the first token does. In the first step a draft given with the request
        replaces the guesses.
        """
        if canvas.draft and not canvas.steps:
            return Draft(canvas.draft[:most], "request")
        if written_SV is None:
            if self.rule.drafts == "none" or canvas.spell:
                return Draft()
            return self._found(request, canvas, min(most, len(canvas.ids) - canvas.settled - 1), canvas_context)
        guesses = [best(written_V) for written_V in written_SV[:most]]
        if canvas.spell and guesses:
            guesses[0] = best(self.masks.apply(SlotLimits(canvas.spell, request.multiline), written_SV[0]))
        ids, is_whole = before_end(guesses, self.vocabulary.end_id)
        return Draft(ids, "writer", is_whole)

    def _found(self, request: FillRequest, canvas: Canvas, most: int, canvas_context: CanvasContext) -> Draft:
        """The draft from n-gram lookup; in a single line up to its break, which needs no draft."""
        draft = Draft(ngram_match(canvas_context, canvas).draft[:most])
        if request.multiline:
            return draft
        texts = self.vocabulary.texts
        return draft.first(next((i for i, token in enumerate(draft.ids) if "\n" in texts[token]), len(draft.ids)))

    def _accept(
        self,
        request: FillRequest,
        canvas: Canvas,
        canvas_context: CanvasContext,
        written_SV: Array | None,
        draft: Draft,
        read_SV: list[Array],
        is_last_step: bool,
    ) -> None:
        """Settle slots from the left while the mixture agrees with the draft; the last step settles all of it."""
        for i, read_V in enumerate(read_SV[: len(canvas.ids) - canvas.settled]):
            written_V = None if written_SV is None or i >= len(written_SV) else written_SV[i]
            mixed_V = self.mix(request, canvas, written_V, self._with_unread(read_V, canvas_context, canvas), i)
            rank, canvas.choice = (0, canvas.choice) if canvas.spell else (canvas.choice, 0)
            token = best(mixed_V, rank)
            canvas.settle(token, checked(math.exp(float(mixed_V[token]))))
            agreed = draft.agrees(i, token)
            canvas.count(token, draft.source if agreed else "pass")
            canvas.ended |= not canvas.spell and self.goes_beyond(canvas)
            if canvas.ended or i >= len(draft.ids) or not (agreed or is_last_step):
                break

    def _with_unread(self, read_V: Array, canvas_context: CanvasContext, canvas: Canvas) -> Array:
        if not canvas_context.ngrams.has_unread:
            return read_V
        return mix_in_unread(read_V, ngram_match(canvas_context, canvas), self.rule.recall)


def _end(text: str, canvas: Canvas) -> int | None:
    """Where a text on the canvas goes beyond what it is for; None if it does not."""
    behind = find_end(text, canvas.follows)
    line = None if canvas.multiline else first_line_end(text)
    other = thought_end(text, canvas.line) if canvas.line is not None and "\n" in text else None
    return min((end for end in (behind, line, other) if end is not None), default=None)


def _is_last_step(request: FillRequest, canvas: Canvas) -> bool:
    return request.max_steps is not None and canvas.steps + 1 >= request.max_steps


def ngram_match(canvas_context: CanvasContext, canvas: Canvas) -> NgramMatch:
    """The match of the last tokens before the next slot."""
    return canvas_context.ngrams.find((*canvas_context.text, *canvas.ids[: canvas.settled]))


def checked(chance: float) -> float:
    """The chance. Raises ModelCorrupt when it is NaN."""
    if math.isnan(chance):
        raise ModelCorrupt("the weights compute NaN; fetch the model again, or set mercury.model to null")
    return chance
