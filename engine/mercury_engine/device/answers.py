"""Answers about rows on a GPU: only what a rule needs comes to the host, for all questions in one copy.

Dimensions as in `row_answers.py`.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from mercury_kernels import ops
from mercury_kernels.ops import Matrix
from mercury_kernels.reference import banned, figures
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from mercury_engine.models.row_answers import CANDIDATES, RowAnswers, RowQuestion

Told = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
"""Tokens int32 [W], figures [W,4], candidates int32 [W,K], their logits [W,K], logits asked for [W,A]."""


def staged(array: NDArray[np.generic], device: torch.device) -> Tensor:
    """The array in memory of the host, from which a GPU copies while the host goes on."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory() if device.type == "cuda" else tensor


def sent(array: NDArray[np.generic], device: torch.device) -> Tensor:
    """The array on a device; the host does not wait for a GPU to have it."""
    return staged(array, device).to(device, non_blocking=True)


def answered_by_head(
    hidden_WC: Tensor, head_VC: Tensor, scale: float, questions: Sequence[RowQuestion]
) -> list[RowAnswers]:
    """Answers about consecutive rows in front of the head; without logits, unless a question draws."""
    told = list[Told]()
    for rows_WC, asks in zip(hidden_WC.split([each.rows for each in questions]), questions, strict=True):
        if asks.draws:
            told.append(_told(F.linear(rows_WC, head_VC).float() * scale, asks))
            continue
        token_W, figures_W4 = ops.answers(rows_WC, Matrix(head_VC), *_bans(asks, rows_WC.device), scale)
        asked_WA = F.linear(rows_WC, head_VC[_asked(asks, rows_WC.device)]).float() * scale
        none = token_W.new_empty(len(token_W), 0)
        told.append((token_W, figures_W4, none, none.float(), asked_WA))
    return list(_fetched(told))


def answered_by_logits(logits_WV: Tensor, questions: Sequence[RowQuestion]) -> list[RowAnswers]:
    """Answers about consecutive rows of logits."""
    parts = logits_WV.split([each.rows for each in questions])
    return list(_fetched([_told(logits, asks) for logits, asks in zip(parts, questions, strict=True)]))


def _told(logits_WV: Tensor, asks: RowQuestion) -> Told:
    bits, lists = _bans(asks, logits_WV.device)
    token_W, figures_W4 = figures(logits_WV, bits, lists)
    logits, tokens = logits_WV.new_empty(len(logits_WV), 0), token_W.new_empty(len(logits_WV), 0)
    if asks.draws:
        vocabulary = logits_WV.shape[1]
        free_WV = logits_WV.masked_fill(banned(vocabulary, bits, lists), float("-inf"))
        logits, best = free_WV.topk(min(CANDIDATES, vocabulary))
        missing = CANDIDATES - logits.shape[1]
        logits = F.pad(logits, (0, missing), value=float("-inf"))
        tokens = F.pad(best.int(), (0, missing)).masked_fill(logits == float("-inf"), 0)
    return token_W, figures_W4, tokens, logits, logits_WV[:, _asked(asks, logits_WV.device)]


def _bans(asks: RowQuestion, device: torch.device) -> tuple[Tensor, Tensor]:
    return sent(asks.banned_N.view(np.int32), device), sent(asks.list_W, device)


def _asked(asks: RowQuestion, device: torch.device) -> Tensor:
    return sent(asks.asked_A.astype(np.int64), device)


def _fetched(told: Sequence[Told]) -> Iterator[RowAnswers]:
    """The answers on the host; all travel as one array of four-byte numbers."""
    flat = [each.reshape(-1).view(torch.float32) for fields in told for each in fields]
    host, start = torch.cat(flat).cpu().numpy(), 0
    for fields in told:
        arrays = []
        for each in fields:
            values = host[start : start + each.numel()].reshape(each.shape)
            arrays.append(values.view(np.int32) if each.dtype == torch.int32 else values)
            start += each.numel()
        token_W, figures_W4, *others = arrays
        yield RowAnswers(token_W, *figures_W4.T, *others)
