"""Measure how reliable a confidence is: reliability bins, and a curve fitted to the share that is right.

A pair is the (confidence, is right) of one suggestion; confidences lie between 0 and 1.
"""

import math
import statistics
from collections.abc import Sequence

import numpy as np

ScoredFill = tuple[float, bool]

_LOW_KNOTS = (0.0, 0.001, 0.003, 0.01, 0.02, 0.05)
KNOT_CONFIDENCES = (*_LOW_KNOTS, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Confidences at which the fitted curve is stored."""

_MIN_DISTANCE = 1e-4
"""Least distance of a confidence from 0 and from 1, so that its odds are finite."""


def reliability(pairs: Sequence[ScoredFill], bins: int = 10) -> list[dict[str, float]]:
    """Mean confidence and share of right suggestions in equal bins of confidence; empty bins are omitted."""
    rows = []
    for number in range(bins):
        inside = [p for p in pairs if min(bins - 1, int(p[0] * bins)) == number]
        if inside:
            mean, share = (statistics.fmean(values) for values in zip(*inside, strict=True))
            rows.append({"confidence": mean, "right": share, "count": len(inside)})
    return rows


def calibration_error(pairs: Sequence[ScoredFill], bins: int = 10) -> float:
    """Expected calibration error: mean distance between confidence and share in bins, by count. arXiv 1706.04599."""
    rows = reliability(pairs, bins)
    return sum(row["count"] * abs(row["confidence"] - row["right"]) for row in rows) / max(1, len(pairs))


def fit_logistic(pairs: Sequence[ScoredFill], rounds: int = 50) -> tuple[float, float]:
    """Slope and shift of right ~ sigmoid(slope * logit(confidence) + shift), by Newton's method (Platt scaling).

    A weak prior, worth a few pairs, pulls toward slope 1 and shift 0, which leave a confidence unchanged. The slope is
    clamped to 0.05 to 3, so that a higher confidence always stays higher.
    """
    x_N, right_N = np.array([(_logit(sure), float(right)) for sure, right in pairs]).reshape(-1, 2).T
    terms, fitted = np.stack((x_N, np.ones_like(x_N)), 1), np.array((1.0, 0.0))
    for _ in range(rounds):
        p_N = 1 / (1 + np.exp(-np.clip(terms @ fitted, -60.0, 60.0)))
        gradient = fitted - (1.0, 0.0) + terms.T @ (p_N - right_N)
        curvature = np.eye(2) + (terms.T * (p_N * (1 - p_N))) @ terms
        fitted = fitted - np.clip(np.linalg.solve(curvature, gradient), -1.0, 1.0)
    return float(np.clip(fitted[0], 0.05, 3.0)), float(fitted[1])


def calibration_knots(slope: float, shift: float) -> list[list[float]]:
    """The fitted curve as rising [confidence, share right] pairs for interpolation, from [0, 0] to [1, 1]."""
    inner = [[raw, _sigmoid(slope * _logit(raw) + shift)] for raw in KNOT_CONFIDENCES[1:-1]]
    return [[0.0, 0.0], *inner, [1.0, 1.0]]


def _logit(share: float) -> float:
    share = min(1 - _MIN_DISTANCE, max(_MIN_DISTANCE, share))
    return math.log(share / (1 - share))


def _sigmoid(odds: float) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, odds))))
