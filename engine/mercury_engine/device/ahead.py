"""Denoise steps that a GPU begins by itself, while the host decides about the step before.

A step is one graph: a pass, what the rule asks of the slots, and the rule, which reveals some. The host follows the
rule, too, with all else that a text may and may not hold, and it alone decides. The pass that it then asks for is
normally under way; where it is another one, because a text has ended or a slot got other bans, what was begun is
dropped. So the text is the host's, and while the host works, the GPU does.

Dimensions: R rows, W wanted rows.
"""

import logging
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from mercury_kernels.capture import Captures
from torch import Tensor

from mercury_engine.device.answers import LISTS, ROWS, AskedShape, Head, answers_in, staged
from mercury_engine.device.step import DeviceStep, Shape, free_bytes
from mercury_engine.models.arrays import IdArray
from mercury_engine.models.decoder import Adapted
from mercury_engine.models.network import CanvasForward, ForwardRequest, ModelConfig
from mercury_engine.models.row_answers import Limits, Reveal, RowAnswers, RowQuestion

Forward = ForwardRequest | CanvasForward

NUMBERS = 7
"""The numbers of a rule: those of `Limits`, whether confidence is entropy, and the end token or -1."""

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
    """Where its answers arrive on the host, and the tokens after it."""
    arrived: torch.cuda.Event


class DenoiseAhead:
    """Runs the denoise steps of one request at a time."""

    def __init__(self, config: ModelConfig, step: DeviceStep, head: Head) -> None:
        self._config, self._step, self._head, device = config, step, head, step.inputs.device
        self._captures = Captures[StepShape](device)
        self._numbers = torch.zeros(NUMBERS + 2 * ROWS[-1], dtype=torch.double, device=device)
        """The numbers of the rule, the wanted rows, and for every row the place of the answer about it, or -1."""
        self._sent: tuple[float, ...] = ()
        self._outputs: dict[StepShape, Tensor] = {}
        self._next: _StartedStep | None = None

    @torch.no_grad()
    def prepare(self) -> None:
        """Capture the steps that fills need, so that no request waits for it."""
        is_canvas, device = self._config.adapter_rank > 0, self._numbers.device
        free = free_bytes(device)
        for rows, keys in self._step.sizes:
            if rows <= ROWS[-1]:
                asked = AskedShape(_at_least(rows // 2), 0, False, is_canvas)
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
            self._send(_numbers(reveal, reveal.limits[1]))
            self._next = self._run(begun.shape, begun.forward)
        begun.arrived.synchronize()
        flat, rows, asked = begun.told.numpy(), begun.shape.rows.rows, len(begun.forward.wanted)
        if self._next is not None:
            self._next.ids_R = flat[-rows:].view(np.int32)[: forward.rows].astype(np.int64)
        return answers_in(flat[:-rows], begun.shape.asked).part(slice(asked - question.rows, asked))

    def _begin(self, forward: Forward, adapted: Adapted, reveal: Reveal) -> _StartedStep | None:
        """Begin a step with what the host knows."""
        question, wanted = _question(forward), [*forward.wanted]
        if question.rows > ROWS[-1] or len(question.banned_N) > LISTS or forward.packing is not None:
            return None
        shape = self._step.load(forward, adapted)
        if shape is None or shape.rows > ROWS[-1]:
            return None
        key = StepShape(shape, AskedShape(_at_least(question.rows), 0, False, isinstance(forward, CanvasForward)))
        if key not in self._captures:
            self._capture(key)
            self._step.load(forward, adapted)
        rows = np.full(2 * ROWS[-1], -1)
        rows[: len(wanted)] = wanted
        rows[ROWS[-1] :][np.array(wanted) + reveal.shift] = np.arange(len(wanted))
        self._head.send(question, key.asked)
        self._send((*_numbers(reveal, reveal.limits[0]), *rows.tolist()))
        return self._run(key, forward)

    def _send(self, numbers: tuple[float, ...]) -> None:
        """Make these the first of the numbers."""
        if numbers != self._sent[: len(numbers)]:
            self._numbers[: len(numbers)].copy_(staged(np.array(numbers), self._numbers.device), non_blocking=True)
        self._sent = numbers + self._sent[len(numbers) :]

    def _run(self, shape: StepShape, forward: Forward) -> _StartedStep:
        self._captures.run(shape)
        flat = self._outputs[shape]
        begun = _StartedStep(
            shape, forward, _ids(forward), torch.empty(flat.shape, pin_memory=True), torch.cuda.Event()
        )
        begun.told.copy_(flat, non_blocking=True)
        begun.arrived.record()
        return begun

    def _capture(self, shape: StepShape) -> None:
        self._step.clear()
        self._captures.prepare(shape, partial(self._work, shape))

    def _work(self, shape: StepShape) -> None:
        """The captured work."""
        ids_R = self._step.inputs[: shape.rows.rows]
        numbers, wanted, answer = self._numbers.split([NUMBERS, ROWS[-1], ROWS[-1]])
        hidden_RC, _, _ = self._step.forward(shape.rows)
        hidden_WC = hidden_RC[wanted[: shape.asked.rows].clamp(min=0).long()]
        flat = self._head.told(shape.asked, hidden_WC)
        token_W, figures = flat[: shape.asked.rows].view(torch.int32), flat[shape.asked.rows :].view(-1, 4)
        ids_R.copy_(revealed(ids_R, answer[: len(ids_R)].long(), token_W, figures, numbers, self._config.mask_id))
        self._outputs[shape] = torch.cat((flat, ids_R.int().view(torch.float32)))


def revealed(
    ids_R: Tensor, answer_R: Tensor, token_W: Tensor, figures_W4: Tensor, numbers: Tensor, mask: int
) -> Tensor:
    """The rows int64 [R] after a step by a rule, as `rules.Rule.step` makes them. `answer_R`: see `DenoiseAhead`."""
    count, share, least, bound, again, by_entropy, end = numbers.unbind()
    logit_W, log_sum_W, _, entropy_W = figures_W4.unbind(1)
    is_slot, answer_R = answer_R >= 0, answer_R.clamp(min=0)
    masked_R = is_slot & (ids_R == mask)
    sure_R = torch.where(by_entropy > 0, -entropy_W, (logit_W - log_sum_W).exp())[answer_R]
    place = torch.arange(len(ids_R), device=ids_R.device)
    is_left_tie = (sure_R == sure_R[:, None]) & (place < place[:, None])
    before = ((sure_R > sure_R[:, None]) | is_left_tie) & masked_R
    spent_R = torch.where(before, -sure_R, 0.0).sum(1)
    few_R = before.sum(1) < count + (masked_R.sum() * share).floor()
    chosen_R = masked_R & (few_R | (sure_R >= least) | (spent_R <= bound))
    ids_R = torch.where(chosen_R, token_W.long()[answer_R], ids_R)
    ends_R = (is_slot & (ids_R == end)).cumsum(0)
    ids_R = torch.where(is_slot & (ends_R > 0), end.long(), ids_R)
    less = (sure_R < sure_R[:, None]) | is_left_tie
    return torch.where(is_slot & ((less & is_slot).sum(1) < again), mask, ids_R)


def _at_least(rows: int) -> int:
    return next(each for each in ROWS if each >= rows)


def _question(forward: Forward) -> RowQuestion:
    assert forward.question is not None
    return forward.question


def _ids(forward: Forward) -> IdArray:
    return forward.ids_T if isinstance(forward, ForwardRequest) else forward.ids_R


def _numbers(reveal: Reveal, limits: Limits) -> tuple[float, ...]:
    return *astuple(limits), float(reveal.by_entropy), -1.0 if reveal.end is None else float(reveal.end)


def _is_as_started(forward: Forward, begun: _StartedStep) -> bool:
    """Whether a step on the device is what a forward asks for, or more."""
    asks, asked = _question(forward), _question(begun.forward)
    first = asked.rows - asks.rows  # slots before these were accepted
    lists = {*zip(asks.list_W.tolist(), asked.list_W[max(0, first) :].tolist(), strict=False)}
    return (
        first >= 0
        and [*forward.wanted] == [*begun.forward.wanted][first:]
        and np.array_equal(_ids(forward), begun.ids_R)
        and _context(forward) == _context(begun.forward)
        and all(np.array_equal(_bans(asks, one), _bans(asked, other)) for one, other in lists)
    )


def _bans(question: RowQuestion, number: int) -> Any:
    return () if number < 0 else question.banned_N[number]


def _context(forward: Forward) -> tuple[object, ...]:
    """What the rows of a forward see beside each other."""
    if isinstance(forward, ForwardRequest):
        return [*map(id, forward.past)], forward.start, forward.block, forward.adapter
    return [*map(id, forward.before)], [*map(id, forward.after)], forward.end
