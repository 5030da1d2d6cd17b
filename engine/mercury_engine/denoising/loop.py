"""The denoising loop: coarse to fine over one canvas, with the reader as a second opinion.

Each step the writer looks at the whole canvas once and drafts every open slot, or the context is looked through for
a repeat (`DenoisingRule.drafts`). The reader then reads the run of settled slots and the draft behind it, as if typed.
Slots are settled from the left by the mixture of both opinions for as long as it agrees with the draft, so one step
settles several tokens. Behind a draft the writer's opinion is the one from the start of the step, made without the
slots settled since. Its drafts further right stay on the canvas, revisable, when the entropy bound accepts them.
Where unread text repeats what stands before a slot, how it goes on there is a part of the reader's opinion
(`DenoisingRule.recall`).
Where the writer decides (`DenoisingRule.decides`), a step is one look of the writer and nothing else (`writing.py`).

Dimensions: S slots, V vocabulary with mask and end.
"""

import math
import time
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from mercury_engine.api import FillRequest
from mercury_engine.denoising.canvas import Canvas, Vocabulary
from mercury_engine.denoising.ngram_lookup import NgramMatch
from mercury_engine.denoising.stopping import StoppingCriteria, find_end
from mercury_engine.denoising.unmasking import choose_by_confidence, choose_by_entropy, entropy
from mercury_engine.denoising.verifier import CanvasContext, Verifier
from mercury_engine.denoising.writer_step import SlotLimits, WriterStep, first_slot_limits
from mercury_engine.errors import Cancelled, ModelCorrupt
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import Network, packed
from mercury_engine.prompt.tokenizer import Tokenizer

NEGATIVE_INFINITY = float("-inf")

SLOTS_BEHIND_END = 4
"""Slots kept behind a drafted end marker, should it turn out too early."""

LARGEST_LOOKUP_SHARE = 0.9
"""Share that the longest repeats have; the reader's opinion always counts."""


@dataclass(frozen=True, slots=True)
class DenoisingRule:
    """How much is done per step and how the opinions are weighed; weights are fitted on held-out text.

    Raises ValueError for words it does not know and shares that are none.
    """

    decides: Literal["reader", "writer"] = "reader"
    """Who settles slots: the reader from the left, in a mixture with the writer, or the writer alone.

    Alone it commits slots in any order by `bound` or `threshold`, which need no reader and no host: on a GPU such
    fills do not leave the device. The weights, `drafts`, `recall`, `lookahead` and `window` are then without effect.
    """
    drafts: Literal["writer", "context", "none"] = "writer"
    """Where drafts come from when nobody looks at them and steps are not limited; else, and by default, the writer.

    "context" is a lookup of what followed the last tokens before: no forward pass, so it is faster for as long as the
    writer does not draft two tokens right. "none" decodes left to right, for comparison.
    """
    bound: float = 0.1
    """Nats of entropy that drafts to the right may risk together."""
    next_weight: float = 0.5
    """Writer's share in the log-linear mixture for the leftmost open slot."""
    later_weight: float = 0.15
    """Its share for slots behind a draft, where it has not seen what the reader has."""
    end_weight: float = 0.5
    """Its share in the odds of the end marker."""
    recall: float = 0.06
    """Share of how text elsewhere goes on, for each token that the repeat has beyond the first (`repeats.py`).

    Fitted for the bundled reader; a better one needs less.
    """
    lookahead: int = 8
    """Draft tokens that the reader reads per step, at most."""
    window: int = 16
    """Open slots that the writer sees at once; a short canvas is a cheap one, and most gaps are short."""
    threshold: float | None = None
    """Keep drafts that are at least this sure, in place of the entropy bound."""

    def __post_init__(self) -> None:
        for name, known in (("decides", ("reader", "writer")), ("drafts", ("writer", "context", "none"))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is {getattr(self, name)!r}; known are {', '.join(known)}")
        if not 0 <= self.recall <= 1:
            raise ValueError(f"recall is {self.recall}; it must be from 0 to 1")


class Denoiser:
    """Runs the loop for one model. Without a writer all drafts come from the context."""

    def __init__(self, reader: Network, writer: Network | None, tokenizer: Tokenizer, rule: DenoisingRule) -> None:
        self.reader, self.writer, self.tokenizer, self.rule = reader, writer, tokenizer, rule
        texts = tokenizer.texts + [""] * (reader.config.vocab_size - tokenizer.size)  # unused rows of the embedding
        self.vocabulary = Vocabulary(texts, reader.config.mask_id, reader.config.end_id)
        self.stopping = StoppingCriteria(tokenizer, texts)
        self.writing = WriterStep(tokenizer, self.vocabulary, self.stopping)

    def run(
        self, request: FillRequest, canvases: list[Canvas], place: CanvasContext, started: float
    ) -> ForwardSteps[None]:
        """Settle slots until the end, the deadline or the cancel flag.

        All canvases begin with the same settled slots. The deadline counts from `started`, a time of
        `time.perf_counter`.
        """
        reading = self._reading(place, canvases[0])
        while live := [c for c in canvases if self.is_open(request, c)]:
            if request.cancel.is_set():
                raise Cancelled("superseded by a newer request")
            if request.deadline_ms is not None and (time.perf_counter() - started) * 1e3 >= request.deadline_ms:
                break
            yield from self._step(request, live, place, reading)
            if len(canvases) == 1:
                reading.push(live[0].ids[place.settled : live[0].settled])
                place.settled = live[0].settled
            for canvas in live:
                if canvas.ended and self.repaired(request, canvas) and canvas.settled < place.settled:
                    place.settled = canvas.settled
                    reading = self._reading(place, canvas)

    def _reading(self, place: CanvasContext, canvas: Canvas) -> Verifier:
        """A stack with the settled slots that all canvases share."""
        reading = Verifier(self.reader, place.context.before, place.last, place.ends)
        reading.push(canvas.ids[: place.settled])
        return reading

    def repaired(self, request: FillRequest, canvas: Canvas) -> bool:
        """Whether slots of a finished canvas were opened again, for its text breaks the syntax."""
        wrong = request.check(self.text(canvas)) if request.check else None
        if wrong is not None:
            canvas.reopen(wrong)
        return wrong is not None

    def text(self, canvas: Canvas) -> str:
        """What the settled slots put behind the cursor, up to where they go on with what stands there."""
        whole = self.tokenizer.decode(canvas.ids[canvas.known : canvas.settled])
        text = whole[len(canvas.begun) :] if whole.startswith(canvas.begun) else ""
        return text[: find_end(text, canvas.follows)]

    def goes_beyond(self, canvas: Canvas) -> bool:
        """Whether the last token goes on with what stands behind the gap."""
        whole = self.tokenizer.decode(canvas.ids[canvas.known : canvas.settled])
        return find_end(whole[len(canvas.begun) :], canvas.follows) is not None

    def is_open(self, request: FillRequest, canvas: Canvas) -> bool:
        """Whether another step makes sense."""
        if canvas.ended or canvas.settled >= len(canvas.ids) or canvas.confidence < request.give_up_below:
            return False
        return request.max_steps is None or canvas.steps < request.max_steps

    def _step(
        self, request: FillRequest, live: list[Canvas], place: CanvasContext, reading: Verifier
    ) -> ForwardSteps[None]:
        """One look by the writer at all canvases, one by the reader, and what they agree on is settled."""
        if self.rule.decides == "writer":
            self._write_step(request, live, place)
            return
        written = self.write(live, place) if self._asks_writer(request) else [None] * len(live)
        final = request.max_steps is not None and live[0].steps + 1 >= request.max_steps
        most = self.rule.window if final else self.rule.lookahead
        drafts = [self._draft(request, c, w, most, place) for c, w in zip(live, written, strict=True)]
        read = yield from reading.look([c.ids[place.settled : c.settled] for c in live], [draft for draft, _ in drafts])
        for canvas, written_SV, (draft, whole), read_SV in zip(live, written, drafts, read, strict=True):
            offset = canvas.settled
            self._agree(request, canvas, place, written_SV, draft, read_SV, final)
            canvas.ended |= final and whole
            if written_SV is not None and not canvas.ended:
                self._keep_drafts(canvas, written_SV[canvas.settled - offset :])
            canvas.step_done(written_SV, offset)

    def _write_step(self, request: FillRequest, live: list[Canvas], place: CanvasContext) -> None:
        """One look by the writer at all canvases, and what it is sure of is committed."""
        rule = self.rule
        written = self.write(live, place, max(len(canvas.ids) for canvas in live))
        for canvas, written_SV in zip(live, written, strict=True):
            assert written_SV is not None, "no writer that could decide"
            offset, final = canvas.settled, request.max_steps is not None and canvas.steps + 1 >= request.max_steps
            self.writing.decide(canvas, written_SV, request.multiline, rule.bound, rule.threshold, final)
            self.advance(canvas)
            canvas.step_done(written_SV, offset)

    def advance(self, canvas: Canvas) -> None:
        """Settle what is final from the left; what stands behind a part of a word to spell is written again."""
        while not canvas.ended and canvas.settled in canvas.ahead:
            chance = _number(canvas.ahead.pop(canvas.settled))
            canvas.settle(canvas.ids[canvas.settled], chance)
            if canvas.spell:
                canvas.write_again()
            else:
                canvas.ended |= self.goes_beyond(canvas)

    def _agree(
        self,
        request: FillRequest,
        canvas: Canvas,
        place: CanvasContext,
        written_SV: Tensor | None,
        draft: list[int],
        read_SV: list[Tensor],
        final: bool,
    ) -> None:
        """Settle from the left for as long as the mixture agrees with the draft; the last step settles all of it."""
        for i, read_V in enumerate(read_SV[: len(canvas.ids) - canvas.settled]):
            written_V = None if written_SV is None or i >= len(written_SV) else written_SV[i]
            mixed_V = self.mix(request, canvas, written_V, self._recalled(read_V, place, canvas), i)
            rank, canvas.choice = (0, canvas.choice) if canvas.spell else (canvas.choice, 0)
            token = int(mixed_V.topk(rank + 1).indices[-1])
            canvas.settle(token, _number(float(mixed_V[token].exp())))
            canvas.ended |= not canvas.spell and self.goes_beyond(canvas)
            if canvas.ended or i >= len(draft) or (token != draft[i] and not final):
                break

    def write(self, canvases: list[Canvas], place: CanvasContext, window: int | None = None) -> list[Tensor | None]:
        """The writer's log-probabilities [S,V] for the open slots within the window of each canvas."""
        if self.writer is None:
            return [None] * len(canvases)
        device = self.writer.embedding.device
        window = window or self.rule.window
        rows = [[place.last, *c.ids[: c.settled + window]] for c in canvases]
        ids_BR, packing = packed(rows, device)
        ends = torch.tensor([place.ends], device=device)
        context = place.context
        hidden = self.writer.write(ids_BR, context.before, context.after, ends, packing if len(rows) > 1 else None)[0]
        parts = hidden.split([len(row) for row in rows])
        opened = [part[c.settled : -1] for part, c in zip(parts, canvases, strict=True)]
        logp = self.writer.writer_logits(torch.cat(opened)).log_softmax(-1)
        return list(logp.split([len(part) for part in opened]))

    def _asks_writer(self, request: FillRequest) -> bool:
        seen = request.on_step is not None or request.max_steps is not None
        return self.writer is not None and (seen or self.rule.drafts == "writer")

    def _draft(
        self, request: FillRequest, canvas: Canvas, written_SV: Tensor | None, most: int, place: CanvasContext
    ) -> tuple[list[int], bool]:
        """Best guesses for the first open slots, and whether an end marker follows them.

        Spelling decides the first guess when it must. In the first step a given draft takes the guesses' place.
        """
        if canvas.draft and not canvas.steps:
            return canvas.draft[:most], False
        if written_SV is None:
            ngrams = self.rule.drafts != "none" and not canvas.spell
            return (_repeat(place, canvas).draft[:most] if ngrams else []), False
        guesses = written_SV[:most].clone()
        if canvas.spell and len(guesses):
            guesses[0] = self._within(SlotLimits(canvas.spell, request.multiline), guesses[0])
        ids = [int(i) for i in guesses.argmax(-1)]
        return (ids[: ids.index(self.vocabulary.end_id)], True) if self.vocabulary.end_id in ids else (ids, False)

    def mix(self, request: FillRequest, canvas: Canvas, written_V: Tensor | None, read_V: Tensor, ahead: int) -> Tensor:
        """Log-probabilities [V] of the next slot by both opinions; the end has odds of its own."""
        size = len(read_V)
        ending = self.stopping.at(canvas.follows, request.multiline, self.text(canvas))
        end = NEGATIVE_INFINITY if ending is None else float(read_V[ending.tokens].logsumexp(0))
        content_V = read_V
        if written_V is not None:
            share = self.rule.next_weight if ahead == 0 else self.rule.later_weight
            content_V = share * written_V[:size] + (1 - share) * read_V
            if ending is not None:
                share = self.rule.end_weight
                end = share * float(written_V[self.vocabulary.end_id]) + (1 - share) * end
        mixed_V = torch.cat((content_V, content_V.new_tensor([NEGATIVE_INFINITY, end])))
        if ending is not None and ending.is_certain and not canvas.spell:
            mixed_V[ending.tokens] = NEGATIVE_INFINITY
        return self._within(first_slot_limits(canvas, request.multiline), mixed_V).log_softmax(-1)

    def _recalled(self, read_V: Tensor, place: CanvasContext, canvas: Canvas) -> Tensor:
        """Log-probabilities [V] of the next slot: the reader's in a linear mixture with how unread text goes on."""
        if not place.ngrams.has_unread:
            return read_V
        repeat = _repeat(place, canvas)
        share = min(LARGEST_LOOKUP_SHARE, self.rule.recall * (repeat.length - 1))
        if share <= 0 or not repeat.unread:
            return read_V
        tokens = torch.tensor([*repeat.unread], device=read_V.device)
        recalled = share * torch.tensor([*repeat.unread.values()], device=read_V.device)
        mixed_V = read_V + math.log1p(-share)
        mixed_V[tokens] = (mixed_V[tokens].exp() + recalled).log()
        return mixed_V

    def _within(self, limits: SlotLimits, logp_V: Tensor) -> Tensor:
        """Hide what a slot may not get."""
        return logp_V.masked_fill(self.writing.forbidden(limits).to(logp_V.device), NEGATIVE_INFINITY)

    def _keep_drafts(self, canvas: Canvas, open_SV: Tensor) -> None:
        """Write the surest guesses for open slots onto the canvas, mask the others again."""
        if len(open_SV) < 2:
            return
        chosen_S = self._sure(open_SV)
        chosen_S[0] = False  # the next slot is the mixture's to decide
        best = open_SV.argmax(-1).tolist()
        for i, token in enumerate(best):
            canvas.ids[canvas.settled + i] = token if bool(chosen_S[i]) else self.vocabulary.mask_id
        self._shrink(
            canvas, [i for i, token in enumerate(best) if token == self.vocabulary.end_id and bool(chosen_S[i])]
        )

    def _sure(self, open_SV: Tensor) -> Tensor:
        """Open slots whose guesses may stay as drafts: by the entropy bound, or above the threshold."""
        masked_S = torch.ones(len(open_SV), dtype=torch.bool, device=open_SV.device)
        if self.rule.threshold is not None:
            confidence_S = open_SV.amax(-1).exp()
            return choose_by_confidence(confidence_S, masked_S, self.rule.threshold) & (
                confidence_S >= self.rule.threshold
            )
        entropy_S = entropy(open_SV)
        entropy_S[0] = float("inf")
        return choose_by_entropy(entropy_S, masked_S, self.rule.bound) & (entropy_S <= self.rule.bound)

    def _shrink(self, canvas: Canvas, ends: list[int]) -> None:
        """Drop slots far behind a sure end marker: they cost time and are end markers too."""
        if ends:
            canvas.ids = canvas.ids[: canvas.settled + ends[0] + SLOTS_BEHIND_END]


def _repeat(place: CanvasContext, canvas: Canvas) -> NgramMatch:
    """Of what stands before the next slot."""
    return place.ngrams.find((*place.near, *canvas.ids[: canvas.settled]))


def _number(chance: float) -> float:
    """The chance, if it is one. Raises ModelCorrupt."""
    if math.isnan(chance):
        raise ModelCorrupt("the weights compute no numbers; fetch the model again, or set mercury.model to null")
    return chance
