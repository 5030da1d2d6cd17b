"""Questions about rows, and what logits tell of them."""

from collections.abc import Sequence

import numpy as np
from mercury_engine.models.row_answers import RowAnswers, RowQuestion, answered


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
