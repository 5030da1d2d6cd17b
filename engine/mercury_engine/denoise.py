"""The denoising loop: coarse to fine over one canvas, with the reader as a second opinion.

Each step the writer looks at the whole canvas once and drafts every open slot; the reader then reads the run
of settled slots and the draft behind it, as if typed. Slots are settled from the left by the mixture of both
opinions for as long as it agrees with the draft, so one step settles several tokens. Behind a draft the writer's
opinion is the one from the start of the step, made without the slots settled since. Drafts further right stay on
the canvas, revisable, when the entropy bound accepts them.

Dimensions: S slots, V vocabulary with mask and end.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from mercury_engine.block_cache import Context
from mercury_engine.codec import Codec
from mercury_engine.commit import choose, choose_confident
from mercury_engine.errors import Cancelled
from mercury_engine.model import Network, Side, join
from mercury_engine.requests import FillRequest, SlotView

HIDDEN = float("-inf")

SLACK = 4
"""Slots kept behind a drafted end marker, should it turn out too early."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How much is done per step and how the opinions are weighed; weights are fitted on held-out text."""

    bound: float = 0.1
    """Nats of entropy that drafts to the right may risk together."""
    next_weight: float = 0.5
    """Writer's share in the log-linear mixture for the leftmost open slot."""
    later_weight: float = 0.15
    """Its share for slots behind a draft, where it has not seen what the reader has."""
    end_weight: float = 0.5
    """Its share in the odds of the end marker."""
    lookahead: int = 8
    """Draft tokens that the reader reads per step."""
    window: int = 16
    """Open slots that the writer sees at once; a short canvas is a cheap one, and most gaps are short."""
    threshold: float | None = None
    """Keep drafts that are at least this sure, in place of the entropy bound."""


@dataclass(slots=True)
class Canvas:
    """The state of one fill; slots [0, settled) are final."""

    ids: list[int]
    settled: int
    spell: str
    confidence: float = 1.0
    chances: list[float] = field(default_factory=list)
    ended: bool = False
    steps: int = 0
    trace: list[tuple[SlotView, ...]] = field(default_factory=list)


class Denoiser:
    """Runs the loop for one model. Without a writer it decodes left to right: one slot a step."""

    def __init__(self, reader: Network, writer: Network | None, codec: Codec, rule: Rule) -> None:
        self.reader, self.writer, self.codec, self.rule = reader, writer, codec, rule
        self.mask_id, self.end_id = reader.config.mask_id, reader.config.end_id
        self._texts = codec.texts + [""] * (reader.config.vocab_size - codec.size)  # unused rows of the embedding
        self._breaks = torch.tensor([i for i, text in enumerate(self._texts) if "\n" in text])
        self._ends_text = torch.tensor([i for i, t in enumerate(self._texts) if not t or t.startswith("<|")])
        self._ids = {text: i for i, text in enumerate(codec.texts)}
        self._spellings: dict[tuple[str, bool], Tensor] = {}

    @torch.inference_mode()
    def run(
        self, request: FillRequest, canvas: Canvas, context: Context, last: int, ends: int, started: float
    ) -> Canvas:
        """Settle slots until the end, the deadline or the cancel flag; `last` stands at position `ends`.

        The deadline counts from `started`, a time of `time.perf_counter`.
        """
        reading = Reading(self.reader, context.before, last, ends)
        reading.push(canvas.ids[: canvas.settled])
        while not canvas.ended and canvas.settled < len(canvas.ids):
            if request.cancel.is_set():
                raise Cancelled("superseded by a newer request")
            if request.deadline_ms is not None and (time.perf_counter() - started) * 1e3 >= request.deadline_ms:
                break
            if canvas.confidence < request.give_up_below:
                break
            self._step(request, canvas, context, reading, last, ends)
        return canvas

    def _step(
        self, request: FillRequest, canvas: Canvas, context: Context, reading: "Reading", last: int, ends: int
    ) -> None:
        """One look by the writer, one by the reader, and what they agree on is settled.

        The last step that a request allows settles the whole draft, agreed on or not.
        """
        canvas.steps += 1
        final = request.max_steps is not None and canvas.steps >= request.max_steps
        written_SV = self.write(canvas, context, last, ends)
        draft, whole = self._draft(request, canvas, written_SV, self.rule.window if final else self.rule.lookahead)
        read_SV = reading.look(draft)
        offset = canvas.settled
        for i, read_V in enumerate(read_SV[: len(canvas.ids) - offset]):
            written_V = None if written_SV is None or i >= len(written_SV) else written_SV[i]
            chance, token = (float(x) for x in self.mix(request, canvas, written_V, read_V, i).max(0))
            self._settle(canvas, int(token), math.exp(chance))
            if canvas.ended or i >= len(draft) or (token != draft[i] and not final):
                break
        canvas.ended |= final and whole
        reading.push(canvas.ids[offset : canvas.settled])
        if written_SV is not None and not canvas.ended:
            self._keep_drafts(canvas, written_SV[canvas.settled - offset :])
        canvas.trace.append(self._view(canvas, written_SV, offset))

    def write(self, canvas: Canvas, context: Context, last: int, ends: int) -> Tensor | None:
        """The writer's log-probabilities [S,V] for the open slots within the window."""
        if self.writer is None:
            return None
        device = self.writer.embedding.device
        ids_BR = torch.tensor([[last, *canvas.ids[: canvas.settled + self.rule.window]]], device=device)
        hidden = self.writer.write(ids_BR, context.before, context.after, torch.tensor([ends], device=device))
        return self.writer.writer_logits(hidden[0, canvas.settled : -1]).log_softmax(-1)

    def _draft(
        self, request: FillRequest, canvas: Canvas, written_SV: Tensor | None, most: int
    ) -> tuple[list[int], bool]:
        """Best guesses for the first open slots, and whether an end marker follows them.

        Spelling decides the first guess when it must.
        """
        if written_SV is None:
            return [], False
        guesses = written_SV[:most].clone()
        if canvas.spell and len(guesses):
            guesses[0] = self._spelling(guesses[0], canvas.spell, request.multiline)
        ids = [int(i) for i in guesses.argmax(-1)]
        return (ids[: ids.index(self.end_id)], True) if self.end_id in ids else (ids, False)

    def mix(self, request: FillRequest, canvas: Canvas, written_V: Tensor | None, read_V: Tensor, ahead: int) -> Tensor:
        """Log-probabilities [V] of the next slot by both opinions; the end has odds of its own."""
        size = len(read_V)
        end_read = self._reader_end(request, read_V)
        if written_V is None:
            content_V, end = read_V, end_read
        else:
            share = self.rule.next_weight if ahead == 0 else self.rule.later_weight
            content_V = share * written_V[:size] + (1 - share) * read_V
            end = self.rule.end_weight * float(written_V[self.end_id]) + (1 - self.rule.end_weight) * end_read
        mixed_V = torch.cat((content_V, content_V.new_tensor([HIDDEN, end])))
        mixed_V[self._ends_text] = HIDDEN
        if canvas.spell:
            mixed_V = self._spelling(mixed_V, canvas.spell, request.multiline)
        elif not request.multiline:
            mixed_V[self._breaks] = HIDDEN
        return mixed_V.log_softmax(-1)

    def _reader_end(self, request: FillRequest, read_V: Tensor) -> float:
        """How likely, for the reader, what follows the gap comes next: a line break, or the suffix's first token."""
        follows = next((text for text in request.suffix if text), "")
        if request.multiline and follows.startswith(("\n", "\r")):
            return float(read_V[self._continues(follows)].logsumexp(0))
        if follows.startswith(("\n", "\r")) or not follows.strip() or (self.writer is None and not request.multiline):
            return float(torch.cat((read_V[self._breaks], read_V[self._ends_text])).logsumexp(0))
        return float(read_V[self._continues(follows)].logsumexp(0))

    def _continues(self, follows: str) -> list[int]:
        """Tokens that spell the beginning of what follows."""
        ids = self._ids
        return [ids[follows[:n]] for n in range(1, 17) if n <= len(follows) and follows[:n] in ids]

    def _spelling(self, logp_V: Tensor, spell: str, multiline: bool) -> Tensor:
        """Hide every token that does not continue the text cut off before the cursor, or breaks the line behind it."""
        allowed = self._allowed(spell, multiline)
        out = torch.full_like(logp_V, HIDDEN)
        out[allowed] = logp_V[allowed]
        return out

    def _allowed(self, spell: str, multiline: bool) -> Tensor:
        if (spell, multiline) not in self._spellings:
            fitting = [i for i, t in enumerate(self._texts) if t and (t.startswith(spell) or spell.startswith(t))]
            kept = [i for i in fitting if multiline or "\n" not in self._texts[i][len(spell) :]]
            self._spellings = {(spell, multiline): torch.tensor(kept)}
        return self._spellings[spell, multiline]

    def _settle(self, canvas: Canvas, token: int, chance: float) -> None:
        """Make the next slot final; forced spelling does not count against the confidence."""
        text = "" if token == self.end_id else self._texts[token]
        forced = bool(text) and canvas.spell.startswith(text)
        canvas.spell = canvas.spell[len(text) :] if forced else ""
        canvas.chances.append(1.0 if forced else chance)
        canvas.confidence *= canvas.chances[-1]
        if token == self.end_id:
            canvas.ids = canvas.ids[: canvas.settled]
            canvas.ended = True
            return
        canvas.ids[canvas.settled] = token
        canvas.settled += 1

    def _keep_drafts(self, canvas: Canvas, open_SV: Tensor) -> None:
        """Write the surest guesses for open slots onto the canvas, mask the others again."""
        if len(open_SV) < 2:
            return
        chosen_S = self._sure(open_SV)
        chosen_S[0] = False  # the next slot is the mixture's to decide
        best = open_SV.argmax(-1).tolist()
        for i, token in enumerate(best):
            canvas.ids[canvas.settled + i] = token if bool(chosen_S[i]) else self.mask_id
        self._shrink(canvas, [i for i, token in enumerate(best) if token == self.end_id and bool(chosen_S[i])])

    def _sure(self, open_SV: Tensor) -> Tensor:
        """Open slots whose guesses may stay as drafts: by the entropy bound, or above the threshold."""
        masked_S = torch.ones(len(open_SV), dtype=torch.bool, device=open_SV.device)
        if self.rule.threshold is not None:
            confidence_S = open_SV.amax(-1).exp()
            return choose_confident(confidence_S, masked_S, self.rule.threshold) & (confidence_S >= self.rule.threshold)
        entropy_S = -(open_SV.exp() * open_SV.clamp_min(-60)).sum(-1)
        entropy_S[0] = float("inf")
        return choose(entropy_S, masked_S, self.rule.bound) & (entropy_S <= self.rule.bound)

    def _shrink(self, canvas: Canvas, ends: list[int]) -> None:
        """Drop slots far behind a sure end marker: they cost time and are end markers too."""
        if ends:
            canvas.ids = canvas.ids[: canvas.settled + ends[0] + SLACK]

    def _view(self, canvas: Canvas, written_SV: Tensor | None, offset: int) -> tuple[SlotView, ...]:
        views = []
        for i, token in enumerate(canvas.ids):
            if i < canvas.settled:
                chance = canvas.chances[i] if i < len(canvas.chances) else 1.0
                views.append(SlotView(self._texts[token], "committed", chance))
            elif token == self.mask_id or written_SV is None:
                views.append(SlotView("", "mask", 0.0))
            else:
                chance = float(written_SV[i - offset, token].exp())
                end = token == self.end_id
                views.append(SlotView("" if end else self._texts[token], "end" if end else "draft", chance))
        return tuple(views)


class Reading:
    """The reader's stack behind the context: the last prefix token, then settled slots."""

    def __init__(self, reader: Network, before: Sequence[Side], last: int, ends: int) -> None:
        self.reader, self.before, self.pending, self.position = reader, list(before), [last], ends
        self.side: Side | None = None

    def push(self, ids: list[int]) -> None:
        """Settle ids; they are read with the next look."""
        self.pending += ids

    def look(self, draft: list[int]) -> list[Tensor]:
        """Log-probabilities [V] of the slot behind the settled run, and behind every draft token."""
        ids = [*self.pending, *draft]
        past = self.before if self.side is None else [*self.before, self.side]
        tensor = torch.tensor([ids], device=self.reader.embedding.device)
        hidden, block = self.reader.read(tensor, past, self.position)
        fresh, settled = self.reader.rotated(block, self.position), len(self.pending)
        fresh = Side(fresh.keys[:, :, :, :settled], fresh.values[:, :, :, :settled])
        self.side = fresh if self.side is None else join([self.side, fresh])
        self.position += settled
        self.pending = []
        return list(self.reader.logits(hidden[0, settled - 1 :]).log_softmax(-1))
