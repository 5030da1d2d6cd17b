"""The network's head in torch: only what a rule needs comes to the host, in one copy for all questions of a pass.

Questions are joined and padded to a fixed shape, whose work is captured when the shape is first met. A joined question
that fits no shape is answered launch by launch.

Dimensions as in `row_answers.py`; C channels.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from mercury_kernels import ops
from mercury_kernels.capture import Captures
from mercury_kernels.operands import Matrix
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.row_answers import CANDIDATES, WORD, RowAnswers, RowQuestion

ROWS = (16, 64)

ASKED = (0, 64, 512, 4096)
"""Tokens asked for by name."""

LISTS = 8
"""Ban lists of a captured question."""


class AskedShape(NamedTuple):
    """The key of a graph."""

    rows: int
    asked: int
    draws: bool
    is_slots: bool


def staged(array: NDArray[np.generic], device: torch.device) -> Tensor:
    """The array in memory of the host, from which a GPU copies while the host goes on."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory() if device.type == "cuda" else tensor


def sent(array: NDArray[np.generic], device: torch.device) -> Tensor:
    """The array on a device; the host does not wait for a GPU to have it."""
    return staged(array, device).to(device, non_blocking=True)


class Head:
    """The head of one network, its answers in flat arrays of four-byte numbers."""

    def __init__(self, decoder: TorchDecoder, sizes: Sequence[int] = ROWS) -> None:
        """`sizes`: rows of the shapes; without any, every question is answered launch by launch."""
        self._decoder, self._sizes, device = decoder, sizes, decoder.device
        self._captures = Captures[AskedShape, Tensor](device)
        channels, words = decoder.config.hidden_size, -(-(decoder.config.vocab_size + 2) // WORD)
        self._hidden = decoder.embedding.new_zeros(ROWS[-1], channels)
        self._bits = torch.zeros(LISTS, words, dtype=torch.int32, device=device)
        self._numbers = torch.zeros(ROWS[-1] + ASKED[-1], dtype=torch.int32, device=device)
        """The list of every row, then the tokens asked for."""

    @torch.no_grad()
    def answers(self, hidden_WC: Tensor, questions: Sequence[RowQuestion], is_slots: bool) -> list[RowAnswers]:
        """Answers about consecutive rows; those of slots have mask and end at the end of their vocabulary."""
        asks = _joined(questions)
        rows, asked, lists = asks.rows, len(asks.asked_A), len(asks.banned_N)
        fitting = (AskedShape(*each, asks.draws, is_slots) for each in product(self._sizes, ASKED) if lists <= LISTS)
        shape = next((each for each in fitting if each.rows >= rows and each.asked >= asked), None)
        if shape is None:
            given = asks.banned_N.view(np.int32), asks.list_W, asks.asked_A
            shape = AskedShape(rows, asked, asks.draws, is_slots)
            flat = joined(self.told(shape, hidden_WC, [sent(each, hidden_WC.device) for each in given]))
        else:
            self._captures.prepare(shape, lambda: joined(self.told(shape, self._hidden[: shape.rows])))
            self._hidden[:rows].copy_(hidden_WC)
            self.send(asks, shape)
            flat = self._captures.run(shape)
        return _parted(answers_in(flat.cpu().numpy(), shape).part(slice(rows)), questions)

    def send(self, asks: RowQuestion, shape: AskedShape) -> None:
        """Make the buffers those of a question."""
        numbers, lists = np.zeros(len(self._numbers), np.int32), asks.banned_N.view(np.int32)
        numbers[: ROWS[-1]] = asks.list_W[-1]  # of slots that a rule adds
        numbers[: asks.rows], numbers[ROWS[-1] : ROWS[-1] + len(asks.asked_A)] = asks.list_W, asks.asked_A
        used, device = ROWS[-1] + shape.asked, self._numbers.device
        self._numbers[:used].copy_(staged(numbers[:used], device), non_blocking=True)
        if len(lists):
            wide = np.zeros((len(lists), self._bits.shape[1]), np.int32)
            wide[:, : lists.shape[1]] = lists
            self._bits[: len(lists)].copy_(staged(wide, device), non_blocking=True)

    def told(self, shape: AskedShape, hidden_WC: Tensor, given: Sequence[Tensor] = ()) -> list[Tensor]:
        """The answers to what was last sent, as `answers_in` reads them when they are joined; may be captured.

        They are tokens [W], figures [W,4], candidates [W,K] and their logits [W,K], logits asked for [W,A]. `given`:
        ban lists, the list of each row and the tokens asked for, in place of what was sent.
        """
        lists_W, asked_A = self._numbers[: shape.rows], self._numbers[ROWS[-1] : ROWS[-1] + shape.asked]
        bits, lists_W, asked_A = given or (self._bits, lists_W, asked_A)
        config, matrix = self._decoder.config, Matrix(self._decoder.head_matrix(shape.is_slots))
        scale, never = 1 / config.logits_scaling, config.mask_id if shape.is_slots else -1
        asks = bits, lists_W, scale, never, shape.draws
        token_W, figures_W4, free_WV = ops.answers(hidden_WC, matrix, *asks)
        fields = [token_W, figures_W4]
        if free_WV is not None:
            logits_WK, best_WK = free_WV.topk(CANDIDATES)
            fields += best_WK.int(), logits_WK
        if shape.asked:
            fields.append(F.linear(hidden_WC, matrix.weight[asked_A]).float() * scale)
        return fields


def joined(fields: Sequence[Tensor]) -> Tensor:
    """Fields of four-byte numbers, one after another, as float32."""
    return torch.cat([each.reshape(-1).view(torch.float32) for each in fields])


def answers_in(flat: NDArray[np.float32], shape: AskedShape) -> RowAnswers:
    """The answers in what `Head.told` returns."""
    drawn = CANDIDATES * shape.draws
    widths = np.array([1, 4, drawn, drawn, shape.asked])
    fields = np.split(flat, np.cumsum(widths * shape.rows)[:-1])
    token, figures_W4, candidates, logits, asked = (
        field.reshape(shape.rows, width) for field, width in zip(fields, widths.tolist(), strict=True)
    )
    logit_W, log_sum_W, whole_W, entropy_W = figures_W4.T
    tokens, drawn_WK = token.view(np.int32)[:, 0], candidates.view(np.int32)
    return RowAnswers(tokens, logit_W, log_sum_W, whole_W, entropy_W, drawn_WK, logits, asked)


def _joined(questions: Sequence[RowQuestion]) -> RowQuestion:
    """One question about the rows of all."""
    if len(questions) == 1:
        return questions[0]
    starts = np.cumsum([0, *(len(each.banned_N) for each in questions)])
    lists = [np.where(each.list_W < 0, -1, each.list_W + start) for each, start in zip(questions, starts, strict=False)]
    return RowQuestion(
        np.concatenate(lists).astype(np.int32),
        np.concatenate([each.banned_N for each in questions]),
        any(each.draws for each in questions),
        np.concatenate([each.asked_A for each in questions]),
    )


def _parted(told: RowAnswers, questions: Sequence[RowQuestion]) -> list[RowAnswers]:
    """The answers to each question."""
    found, row, column = list[RowAnswers](), 0, 0
    for each in questions:
        part, asked = told.part(slice(row, row + each.rows)), slice(column, column + len(each.asked_A))
        width = CANDIDATES if each.draws else 0
        candidates, logits = part.candidate_WK[:, :width], part.candidate_logit_WK[:, :width]
        found.append(
            replace(part, candidate_WK=candidates, candidate_logit_WK=logits, asked_WA=part.asked_WA[:, asked])
        )
        row, column = row + each.rows, column + len(each.asked_A)
    return found
