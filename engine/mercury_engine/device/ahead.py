"""Denoise steps that a GPU begins while the host still decides about the step before.

A step is one graph: a pass, the answers about its slots, and the rule, which reveals some of them. The host applies the
same rule, with everything else that a text may or may not hold, and the host alone decides. Usually the pass that it
asks for next is running already. If it asks for another one, because a text has ended or a slot may hold other tokens,
the running step is dropped. So the text is always the host's, and the GPU works while the host does.

A rule may draw tokens, with random numbers that the host sends, and insert and delete slots. Then the rows after them
move, and the keys of the text after the rows are rotated again.

Dimensions: R rows, W wanted rows, K candidates, A tokens after the rows; L, H, D as in `network.py`.
"""

from copy import deepcopy
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from mercury_kernels import ops, reference
from mercury_kernels.capture import Captures
from mercury_kernels.operands import RULE, UNSEEN, Slots
from torch import Tensor

from mercury_engine.device.answers import LISTS, ROWS, AskedShape, Head, answers_in, joined, staged
from mercury_engine.device.step import DeviceStep, PlacedSegment, Shape
from mercury_engine.models.arrays import IdArray
from mercury_engine.models.decoder import Adapted, TorchDecoder
from mercury_engine.models.network import ForwardRequest, KeyValueSegment
from mercury_engine.models.row_answers import CANDIDATES, Limits, Reveal, RowAnswers, RowQuestion

MOST_AFTER = 128
"""Most tokens after the rows if the rule may change the number of slots."""


class StepShape(NamedTuple):
    """The key of a graph."""

    rows: Shape
    asked: AskedShape


@dataclass(slots=True)
class _StartedStep:
    """A step on the device."""

    shape: StepShape
    forward: ForwardRequest
    """The first of the steps that follow one another; the others differ from it in the tokens of slots only."""
    ids_R: IdArray
    told: Tensor
    """Where its answers arrive on the host, with the tokens after it; -1 for padding."""
    arrived: torch.cuda.Event

    @property
    def slots(self) -> int:
        """Number of slots, with those accepted since the first step."""
        return len(self.ids_R) - self.forward.rows + len(self.forward.wanted)


class DenoiseAhead:
    """Runs the denoise steps of one request at a time."""

    def __init__(self, decoder: TorchDecoder, step: DeviceStep, head: Head) -> None:
        self._config, self._step, self._head, device = decoder.config, step, head, decoder.device
        self._captures = Captures[StepShape, Tensor](device)
        self._rule = torch.zeros(RULE + ROWS[-1], dtype=torch.double, device=device)
        """The rule and the numbers with which tokens are drawn, see `Slots`."""
        self._sent: tuple[float, ...] = ()
        self._places = torch.zeros(2 * ROWS[-1] + 1, dtype=torch.long, device=device)
        """The wanted rows; for every row the number of the answer about it, or -1; and the place of the keys after the
        rows."""
        layers, heads, _, width = step.buffer.keys.shape
        self._after = step.buffer.keys.new_zeros(layers, heads, MOST_AFTER, width)
        """Keys [L,H,A,D] after the rows, before rotation."""
        self._count = torch.arange(MOST_AFTER, device=device)
        self._next: _StartedStep | None = None

    @torch.no_grad()
    def prepare(self) -> int:
        """Capture the steps that fills need, so that no request waits for it; returns their number."""
        is_canvas, attention = self._config.adapter_rank > 0, self._config.masked_attention
        draws = attention is not None and attention.expand_id is not None
        for rows, keys in self._step.sizes:
            if rows <= ROWS[-1]:
                asked = AskedShape(_at_least(rows // 2), 0, draws, is_canvas)
                self._capture(StepShape(Shape(rows, keys, is_canvas), asked))
        return len([*self._captures])

    def stop(self) -> None:
        """Drop the step that was begun, before another pass takes its place."""
        self._next = None

    def told(self, forward: ForwardRequest, adapted: Adapted) -> RowAnswers | None:
        """See `Network.told_ahead`; None for what fits no shape."""
        question, begun = _question(forward), self._next
        reveal = question.reveal
        assert reveal is not None
        self.stop()
        if begun is None or not _is_as_started(forward, begun):
            begun = self._begin(forward, adapted, reveal) if reveal.limits else None
        if begun is None:
            return None
        if reveal.limits:
            self._send(reveal, reveal.limits[1], question.rows)
            self._next = self._run(begun.shape, begun.forward)
        begun.arrived.synchronize()
        flat, rows, slots = begun.told.numpy(), begun.shape.rows.rows, begun.slots
        if self._next is not None:
            ids_R = flat[-rows:].view(np.int32).astype(np.int64)
            self._next.ids_R = ids_R[ids_R >= 0]
        return answers_in(flat[:-rows], begun.shape.asked).part(slice(slots - question.rows, slots))

    def _begin(self, forward: ForwardRequest, adapted: Adapted, reveal: Reveal) -> _StartedStep | None:
        """Begin a step from the host's data."""
        question, after = _question(forward), _after(forward)
        if question.rows > ROWS[-1] or len(question.banned_N) > LISTS or forward.runs:
            return None
        if question.draws and (not reveal.choice.temperature or (after and after.block.tokens > MOST_AFTER)):
            return None
        shape = self._step.load(forward, adapted)
        if shape is None or shape.rows > ROWS[-1]:
            return None
        key = StepShape(shape, AskedShape(_at_least(question.rows), 0, question.draws, forward.is_canvas))
        if key not in self._captures:
            self._capture(key)
            self._step.load(forward, adapted)
        if question.draws and after is not None:
            self._step.buffer.held.pop()  # the graph writes its keys
            self._after[:, :, : after.block.tokens].copy_(after.block.keys[:, 0])
        count, first = np.arange(ROWS[-1]), forward.wanted[0]
        answer = count - first - reveal.shift
        answer[(answer < 0) | (answer >= question.rows)] = -1
        places = np.concatenate((np.minimum(first + count, shape.rows - 1), answer, [self._step.buffer.context]))
        self._places.copy_(staged(places, self._places.device), non_blocking=True)
        self._head.send(question, key.asked)
        self._send(reveal, reveal.limits[0], 0)
        return self._run(key, forward)

    def _send(self, reveal: Reveal, limits: Limits, drawn: int) -> None:
        """Make the rule this one, if it is another."""
        numbers = numbers_of(reveal, limits, drawn)
        if numbers != self._sent:
            self._rule.copy_(staged(np.array(numbers), self._rule.device), non_blocking=True)
            self._sent = numbers

    def _run(self, shape: StepShape, forward: ForwardRequest) -> _StartedStep:
        flat = self._captures.run(shape)
        begun = _StartedStep(
            shape, forward, forward.ids_T, torch.empty(flat.shape, pin_memory=True), torch.cuda.Event()
        )
        begun.told.copy_(flat, non_blocking=True)
        begun.arrived.record()
        return begun

    def _capture(self, shape: StepShape) -> None:
        self._step.clear()
        self._places.zero_()  # places of a larger shape lie outside of this one
        self._captures.prepare(shape, partial(self._work, shape))

    def _work(self, shape: StepShape) -> Tensor:
        """The captured work: the answers to the step's question, and the rows after it."""
        rows, asks = shape.rows.rows, shape.asked
        ids_R, position_R, order_R = self._step.inputs[: 3 * rows].view(3, -1)
        rule, uniform = self._rule.split([RULE, ROWS[-1]])
        wanted, answer, place = self._places.split([ROWS[-1], ROWS[-1], 1])
        slots = Slots(ids_R, order_R, answer[:rows], rule, uniform, self._config.mask_id)
        if asks.draws:
            self._move(position_R[0] + (order_R < UNSEEN).sum(), place)
        hidden_RC, _ = self._step.forward(shape.rows)
        told = self._head.told(asks, hidden_RC[wanted[: asks.rows]])
        token_W, sure, *candidates = told
        if asks.draws:
            token_W, sure = ops.draw(candidates[0], candidates[1], slots)
        return joined([*told, ops.reveal(token_W, sure, slots)])

    def _move(self, position: Tensor, place: Tensor) -> None:
        """Write the keys after the rows into the buffer from a place on, for positions from this one on.

        What is beyond them there is the rows' own, written later, or unseen.
        """
        keys, (cos, sin) = self._step.buffer.keys, self._step.angles
        at, places = ((each + self._count).clamp(max=len(cos) - 1) for each in (position, place))
        keys.index_copy_(2, places, reference.rotate(self._after, cos[at], sin[at]))


def numbers_of(reveal: Reveal, limits: Limits, drawn: int) -> tuple[float, ...]:
    """A rule, see `Slots`, and numbers from 0 to 1 with which tokens are drawn, after this many others."""
    choice, (_, *others), uniform = reveal.choice, astuple(reveal.tokens), np.zeros(ROWS[-1])
    drawn_by = choice.temperature, choice.top_p, float(choice.top_k or CANDIDATES)
    tokens = (-1.0 if each is None else float(each) for each in others)
    if reveal.random is not None:
        uniform = deepcopy(reveal.random).random(drawn + ROWS[-1])[drawn:]
    return *astuple(limits), float(choice.confidence == "entropy"), *tokens, *drawn_by, *uniform.tolist()


def _at_least(rows: int) -> int:
    return next(each for each in ROWS if each >= rows)


def _question(forward: ForwardRequest) -> RowQuestion:
    assert forward.question is not None
    return forward.question


def _is_as_started(forward: ForwardRequest, begun: _StartedStep) -> bool:
    """Whether a step on the device computes what a forward asks for."""
    asks, asked, slots = _question(forward), _question(begun.forward), begun.slots
    first = slots - asks.rows  # slots before these were accepted
    other_W = asked.list_W[np.arange(max(0, first), slots).clip(max=asked.rows - 1)]  # of added slots the last one's
    lists = {*zip(asks.list_W.tolist(), other_W.tolist(), strict=False)}
    return (
        first >= 0
        and slots <= begun.shape.asked.rows
        and asks.draws == asked.draws
        and [*forward.wanted] == [*range(begun.forward.wanted[0] + first, begun.forward.wanted[0] + slots)]
        and np.array_equal(forward.ids_T, begun.ids_R)
        and _context(forward) == _context(begun.forward)
        and all(np.array_equal(_bans(asks, one), _bans(asked, other)) for one, other in lists)
    )


def _bans(question: RowQuestion, number: int) -> Any:
    return () if number < 0 else question.banned_N[number]


def _context(forward: ForwardRequest) -> tuple[object, ...]:
    """What the rows of a forward see besides each other."""
    past, after = [_segment(each, forward) for each in forward.past], [*map(id, forward.after or ())]
    return past, after, forward.start, forward.block, forward.adapter


def _segment(segment: KeyValueSegment, forward: ForwardRequest) -> tuple[int, ...]:
    """Identifies a segment; one after the rows moves with them."""
    if not isinstance(segment, PlacedSegment):
        return (id(segment),)
    return id(segment.block), segment.start - forward.rows * (segment.start > forward.start)


def _after(forward: ForwardRequest) -> PlacedSegment | None:
    """The segment that stands after the rows."""
    last = forward.past[-1] if forward.past else None
    return last if isinstance(last, PlacedSegment) and last.start > forward.start else None
