"""The head that gives every candidate, and "nowhere", its probability: two small networks over the features, in NumPy.

Shapes: `C` candidates, `F` features, `H` hidden units. Candidates and nowhere have probabilities that add up to one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from mercury_engine.places.candidates import TOLERANCE_LINES, Candidate, candidates, names_of, occurrences
from mercury_engine.places.context import CONTEXT_FEATURES
from mercury_engine.places.features import FEATURES, Array, features
from mercury_engine.places.situation import Situation

SHAPES = ("mean", "scale", "place_in", "place_in_bias", "place_out", "nowhere_in", "nowhere_in_bias", "nowhere_out",
          "nowhere_bias")  # fmt: skip


@dataclass(frozen=True, slots=True)
class LikelyPlace:
    """A candidate, and the probability that the next edit is within TOLERANCE_LINES of it."""

    candidate: Candidate
    probability: float


class PlaceHead:
    """Ranks candidates; the same weights give the same probabilities as in training."""

    def __init__(self, weights: dict[str, Array]) -> None:
        assert set(weights) == set(SHAPES) and len(weights["mean"]) == len(FEATURES), "made with other features"
        self.weights = weights

    @classmethod
    def load(cls, path: Path) -> "PlaceHead":
        return cls(load_file(path))

    def probabilities(self, rows_CF: Array) -> Array:
        """The probability of every candidate, then that of nowhere; [C + 1]."""
        w = self.weights
        if not len(rows_CF):
            return np.ones(1, np.float32)
        x_CF = (rows_CF - w["mean"]) * w["scale"]
        scores_C = np.maximum(x_CF @ w["place_in"] + w["place_in_bias"], 0) @ w["place_out"]
        hidden_H = np.maximum(pooled(x_CF) @ w["nowhere_in"] + w["nowhere_in_bias"], 0)
        scores = np.append(scores_C, hidden_H @ w["nowhere_out"] + w["nowhere_bias"])
        probabilities = np.exp(scores - scores.max())
        return (probabilities / probabilities.sum()).astype(np.float32)

    def places(self, situation: Situation, count: int = 3) -> list[LikelyPlace]:
        """The likeliest places, best first, none within reach of a better one; empty without changes."""
        if not situation.changes:
            return []
        names = names_of(situation)
        found = occurrences(situation, names)
        listed = candidates(situation, names, found)
        probabilities = self.probabilities(features(situation, listed, names, found))[:-1]
        return distinct(listed, probabilities, count) if listed else []


def pooled(rows_CF: Array) -> Array:
    """What nowhere is judged by: the features of the situation, and the greatest value of each feature of a place."""
    return np.concatenate([rows_CF[0, : len(CONTEXT_FEATURES)], rows_CF[:, len(CONTEXT_FEATURES) :].max(0)])


def distinct(listed: Sequence[Candidate], probabilities: Array, count: int) -> list[LikelyPlace]:
    """The candidates with the best probabilities within their reach, each without those in reach of a better one."""
    documents_C = np.array([each.document for each in listed])
    lines_C = np.array([each.line for each in listed])
    is_near_CC = documents_C[:, None] == documents_C
    is_near_CC &= np.abs(lines_C[:, None] - lines_C) <= TOLERANCE_LINES
    left_C = probabilities
    is_left_C = np.ones(len(listed), np.bool_)
    found: list[LikelyPlace] = []
    while is_left_C.any() and len(found) < count:
        within_C = np.where(is_left_C, is_near_CC @ left_C, -1.0)
        best = int(np.lexsort((-left_C, -within_C))[0])
        found.append(LikelyPlace(listed[best], float(within_C[best])))
        is_left_C &= ~is_near_CC[best]
        left_C = np.where(is_left_C, left_C, 0)
    return found
