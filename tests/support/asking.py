"""Questions about rows, what logits tell of them, and rules of a small vocabulary."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from mercury_engine.decoding.options import Calibration
from mercury_engine.models.row_answers import CANDIDATES, RowAnswers, RowQuestion


def rules_of(*texts: str) -> Any:
    """The rules of a vocabulary of these texts, as far as a hypothesis and its cuts need them."""
    tokenizer = SimpleNamespace(decode=lambda ids: "".join(texts[token] for token in ids))
    return SimpleNamespace(texts=texts, end_id=len(texts) + 1, tokenizer=tokenizer, calibration=Calibration())


def everything(rows: int, vocabulary: int) -> RowQuestion:
    """The logits of all tokens."""
    return RowQuestion.of([None] * rows, vocabulary, asked=range(vocabulary))


def logp(told: RowAnswers) -> np.ndarray:
    """Log-probabilities [W,V] of rows of which everything was asked."""
    return told.asked_WA - told.whole_W[:, None]


def told(logits_WV: np.ndarray, hidden: Sequence[np.ndarray | None] | None = None) -> RowAnswers:
    """What logits tell, candidates included."""
    rows, vocabulary = logits_WV.shape
    question = RowQuestion.of([None] * rows if hidden is None else hidden, vocabulary, draws=True)
    return answered(logits_WV.astype(np.float32), question)


def answered(logits_WV: np.ndarray, question: RowQuestion) -> RowAnswers:
    """The twin in NumPy of what every device answers: the answers of logits float32 [W,V]."""
    bits_N = np.unpackbits(question.banned_N.view(np.uint8), axis=1, count=logits_WV.shape[1], bitorder="little")
    banned_NV = np.pad(bits_N.astype(np.bool_), ((0, 1), (0, 0)))  # the list at -1 bans nothing
    free_WV = np.where(banned_NV[question.list_W], np.float32(-np.inf), logits_WV)
    best_WK = np.argsort(-free_WV, kind="stable")[:, : CANDIDATES if question.draws else 0]
    missing = ((0, 0), (0, CANDIDATES - best_WK.shape[1] if question.draws else 0))
    logit_WK = np.pad(np.take_along_axis(free_WV, best_WK, 1), missing, constant_values=-np.inf)
    candidate_WK = np.where(np.isneginf(logit_WK), 0, np.pad(best_WK, missing)).astype(np.int32)
    (log_sum_W, entropy_W), (whole_W, _) = _sums(free_WV), _sums(logits_WV)
    figures = free_WV.max(1), log_sum_W, whole_W, entropy_W, candidate_WK, logit_WK, logits_WV[:, question.asked_A]
    return RowAnswers(free_WV.argmax(1).astype(np.int32), *figures)


def _sums(logits_WV: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log-sums and entropies of distributions; -inf and NaN where no token is allowed."""
    with np.errstate(invalid="ignore", divide="ignore"):
        top_W1 = logits_WV.max(1, keepdims=True)
        below_WV = (logits_WV - top_W1).astype(np.float64)
        power_WV = np.exp(below_WV)
        total_W = power_WV.sum(1)
        mean_W = (power_WV * np.maximum(below_WV, -88.0)).sum(1) / total_W
        log_sum_W = np.where(np.isneginf(top_W1[:, 0]), -np.inf, top_W1[:, 0] + np.log(total_W))
        return log_sum_W.astype(np.float32), (np.log(total_W) - mean_W).astype(np.float32)
