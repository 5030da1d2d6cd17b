"""Denoise steps that a GPU begins by itself, while the host decides about the step before.

A step is one graph: a pass, what the rule asks of the slots, and the rule, which reveals some. The host follows the
rule, too, with all else that a text may and may not hold, and it alone decides. The pass that it then asks for is
normally under way; where it is another one, because a text has ended or a slot got other bans, what was begun is
dropped. So the text is the host's, and while the host works, the GPU does.

A rule may draw tokens, with numbers that the host sends, and insert and delete slots: the rows after them move, and the
keys of the text after the rows are rotated again.

Dimensions: R rows, W wanted rows, K candidates, A tokens after the rows; L, H, D as in `network.py`.
"""

import logging
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from mercury_kernels.capture import Captures
from mercury_kernels.ops import rotate
from torch import Tensor

from mercury_engine.device.answers import LISTS, ROWS, AskedShape, Head, answers_in, staged
from mercury_engine.device.rows import UNSEEN
from mercury_engine.device.rules import FIELDS, DeviceRule, Slots, drawn, edited, likeliest, numbers_of, revealed
from mercury_engine.device.step import DeviceStep, PlacedSegment, Shape, free_bytes
from mercury_engine.models.arrays import IdArray
from mercury_engine.models.decoder import Adapted, TorchDecoder
from mercury_engine.models.network import CanvasForward, ForwardRequest, KeyValueSegment
from mercury_engine.models.row_answers import Reveal, RowAnswers, RowQuestion

Forward = ForwardRequest | CanvasForward

MOST_AFTER = 128
"""Most tokens after the rows, where a rule changes the number of slots."""

_log = logging.getLogger(__name__)


class StepShape(NamedTuple):
    """What a graph is captured for."""

    rows: Shape
    asked: AskedShape


@dataclass(slots=True)
class _StartedStep:
    """A step on the device."""

    shape: StepShape
    forward: Forward
    """That of the first step in a row: those that run ahead of the host differ from it in the tokens of slots."""
    ids_R: IdArray
    told: Tensor
    """Where its answers arrive on the host, and the tokens after it; -1 for padding if the rule draws."""
    arrived: torch.cuda.Event

    @property
    def slots(self) -> int:
        """Number of slots, those accepted since the first step among them."""
        return len(self.ids_R) - self.forward.rows + len(self.forward.wanted)


class DenoiseAhead:
    """Runs the denoise steps of one request at a time."""

    def __init__(self, decoder: TorchDecoder, step: DeviceStep, head: Head) -> None:
        self._config, self._step, self._head, device = decoder.config, step, head, decoder.device
        self._captures = Captures[StepShape, Tensor](device)
        self._numbers = torch.zeros(FIELDS + 3 * ROWS[-1] + 1, dtype=torch.double, device=device)
        """Of the rule; those that tokens are drawn with; the wanted rows; for every row the place of the answer about
        it, or -1; and the place of the keys after the rows."""
        self._sent: tuple[float, ...] = ()
        layers, heads, self._longest, width = step.keys.shape
        self._after = step.keys.new_zeros(layers, heads, MOST_AFTER, width)
        """Keys [L,H,A,D] after the rows, before rotation."""
        self._count = torch.arange(self._longest, device=device)
        self._cos, self._sin = decoder.angles(self._count)
        self._next: _StartedStep | None = None

    @torch.no_grad()
    def prepare(self) -> None:
        """Capture the steps that fills need, so that no request waits for it."""
        is_canvas, attention, device = self._config.adapter_rank > 0, self._config.masked_attention, self._count.device
        draws, free = attention is not None and attention.expand_id is not None, free_bytes(device)
        for rows, keys in self._step.sizes:
            if rows <= ROWS[-1]:
                asked = AskedShape(_at_least(rows // 2), 0, draws, is_canvas)
                self._capture(StepShape(Shape(rows, keys, is_canvas), asked))
        taken = free - free_bytes(device)
        _log.info("%d denoise steps captured on %s, %d MB", len([*self._captures]), device, taken >> 20)

    def stop(self) -> None:
        """Drop what was begun, before another pass takes its place."""
        self._next = None

    def told(self, forward: Forward, adapted: Adapted) -> RowAnswers | None:
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
            self._send(numbers_of(reveal, reveal.limits[1], question.rows))
            self._next = self._run(begun.shape, begun.forward)
        begun.arrived.synchronize()
        flat, rows, slots = begun.told.numpy(), begun.shape.rows.rows, begun.slots
        if self._next is not None:
            ids_R = flat[-rows:].view(np.int32).astype(np.int64)
            self._next.ids_R = ids_R[ids_R >= 0] if question.draws else ids_R[: forward.rows]
        return answers_in(flat[:-rows], begun.shape.asked).part(slice(slots - question.rows, slots))

    def _begin(self, forward: Forward, adapted: Adapted, reveal: Reveal) -> _StartedStep | None:
        """Begin a step with what the host knows."""
        question, after, is_canvas = _question(forward), _after(forward), isinstance(forward, CanvasForward)
        if question.rows > ROWS[-1] or len(question.banned_N) > LISTS or forward.packing is not None:
            return None
        if question.draws and (not reveal.temperature or (after is not None and after.block.tokens > MOST_AFTER)):
            return None
        shape = self._step.load(forward, adapted)
        if shape is None or shape.rows > ROWS[-1]:
            return None
        key = StepShape(shape, AskedShape(_at_least(question.rows), 0, question.draws, is_canvas))
        if key not in self._captures:
            self._capture(key)
            self._step.load(forward, adapted)
        if question.draws and after is not None:
            self._step.let_go()
            self._after[:, :, : after.block.tokens].copy_(after.block.keys[:, 0])
        count, first = np.arange(ROWS[-1]), forward.wanted[0]
        answer = count - first - reveal.shift
        answer[(answer < 0) | (answer >= question.rows)] = -1
        wanted = np.minimum(first + count, shape.rows - 1)
        self._head.send(question, key.asked)
        self._sent = ()
        self._send((*numbers_of(reveal, reveal.limits[0], 0), *wanted.tolist(), *answer.tolist(), self._step.held))
        return self._run(key, forward)

    def _send(self, numbers: tuple[float, ...]) -> None:
        """Make these the first of the numbers."""
        if numbers != self._sent[: len(numbers)]:
            self._numbers[: len(numbers)].copy_(staged(np.array(numbers), self._numbers.device), non_blocking=True)
        self._sent = numbers + self._sent[len(numbers) :]

    def _run(self, shape: StepShape, forward: Forward) -> _StartedStep:
        flat = self._captures.run(shape)
        begun = _StartedStep(
            shape, forward, _ids(forward), torch.empty(flat.shape, pin_memory=True), torch.cuda.Event()
        )
        begun.told.copy_(flat, non_blocking=True)
        begun.arrived.record()
        return begun

    def _capture(self, shape: StepShape) -> None:
        self._step.clear()
        self._numbers.zero_()  # places of a larger shape lie outside of this one
        self._captures.prepare(shape, partial(self._work, shape))

    def _work(self, shape: StepShape) -> Tensor:
        """The captured work: the answers to the step's question, and the rows after it."""
        rows, asks = shape.rows.rows, shape.asked
        ids_R, position_R, order_R = self._step.inputs[: 3 * rows].view(3, -1)
        numbers, uniform, wanted, answer, place = self._numbers.split([FIELDS, *[ROWS[-1]] * 3, 1])
        rule, slots = DeviceRule(*numbers.unbind()), Slots(ids_R, answer[:rows].long(), self._config.mask_id)
        if asks.draws:
            self._move(position_R[0] + (order_R < UNSEEN).sum(), place.long())
        hidden_RC, _, _ = self._step.forward(shape.rows)
        flat = self._head.told(asks, hidden_RC[wanted[: asks.rows].long()])
        if asks.draws:
            ids = revealed(slots, *drawn(flat, asks.rows, slots, uniform, rule), rule)
            ids, order, moved = edited(slots, ids, order_R, rule)
            order_R.copy_(order)
            answer[:rows].copy_(moved.clamp(max=asks.rows - 1))
            told = ids.where(order < UNSEEN, -1)
        else:
            ids = told = revealed(slots, *likeliest(flat, asks.rows, rule), rule)
        ids_R.copy_(ids)
        return torch.cat((flat, told.int().view(torch.float32)))

    def _move(self, position: Tensor, place: Tensor) -> None:
        """Write the keys after the rows into the buffer from a place on, for positions from this one on.

        What is beyond them there is the rows' own, written later, or unseen.
        """
        count, last = self._count[:MOST_AFTER], self._longest - 1
        at, places = (position + count).clamp(max=last), (place + count).clamp(max=last)
        self._step.keys.index_copy_(2, places, rotate(self._after, self._cos[at], self._sin[at]))


def _at_least(rows: int) -> int:
    return next(each for each in ROWS if each >= rows)


def _question(forward: Forward) -> RowQuestion:
    assert forward.question is not None
    return forward.question


def _ids(forward: Forward) -> IdArray:
    return forward.ids_T if isinstance(forward, ForwardRequest) else forward.ids_R


def _is_as_started(forward: Forward, begun: _StartedStep) -> bool:
    """Whether a step on the device is what a forward asks for, or more."""
    asks, asked, slots = _question(forward), _question(begun.forward), begun.slots
    first = slots - asks.rows  # slots before these were accepted
    other_W = asked.list_W[np.arange(max(0, first), slots).clip(max=asked.rows - 1)]  # of added slots the last one's
    lists = {*zip(asks.list_W.tolist(), other_W.tolist(), strict=False)}
    return (
        first >= 0
        and slots <= begun.shape.asked.rows
        and asks.draws == asked.draws
        and [*forward.wanted] == [*range(begun.forward.wanted[0] + first, begun.forward.wanted[0] + slots)]
        and np.array_equal(_ids(forward), begun.ids_R)
        and _context(forward) == _context(begun.forward)
        and all(np.array_equal(_bans(asks, one), _bans(asked, other)) for one, other in lists)
    )


def _bans(question: RowQuestion, number: int) -> Any:
    return () if number < 0 else question.banned_N[number]


def _context(forward: Forward) -> tuple[object, ...]:
    """What the rows of a forward see beside each other."""
    if isinstance(forward, ForwardRequest):
        return [_segment(each, forward) for each in forward.past], forward.start, forward.block, forward.adapter
    return [*map(id, forward.before)], [*map(id, forward.after)], forward.end


def _segment(segment: KeyValueSegment, forward: ForwardRequest) -> tuple[int, ...]:
    """Identifies a segment; one after the rows moves with them."""
    if not isinstance(segment, PlacedSegment):
        return (id(segment),)
    return id(segment.block), segment.start - forward.rows * (segment.start > forward.start)


def _after(forward: Forward) -> PlacedSegment | None:
    """The segment that stands after the rows."""
    if isinstance(forward, CanvasForward) or not forward.past:
        return None
    last = forward.past[-1]
    return last if isinstance(last, PlacedSegment) and last.start > forward.start else None
