"""Measure how reliable a confidence is: reliability bins, and a curve fitted to the share that is right.

A pair is the (confidence, is right) of one suggestion; confidences lie between 0 and 1.
"""

import math
import statistics
from collections.abc import Sequence

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
    data = [(_logit(c), float(hit)) for c, hit in pairs]
    slope, shift = 1.0, 0.0
    for _ in range(rounds):
        grad_a, grad_b = slope - 1.0, shift
        aa, ab, bb = 1.0, 0.0, 1.0
        for x, y in data:
            p = _sigmoid(slope * x + shift)
            grad_a, grad_b = grad_a + (p - y) * x, grad_b + (p - y)
            w = p * (1 - p)
            aa, ab, bb = aa + w * x * x, ab + w * x, bb + w
        det = aa * bb - ab * ab
        step_a, step_b = (bb * grad_a - ab * grad_b) / det, (aa * grad_b - ab * grad_a) / det
        slope, shift = slope - max(-1.0, min(1.0, step_a)), shift - max(-1.0, min(1.0, step_b))
    return max(0.05, min(3.0, slope)), shift


def calibration_knots(slope: float, shift: float) -> list[list[float]]:
    """The fitted curve as rising [confidence, share right] pairs for interpolation, from [0, 0] to [1, 1]."""
    inner = [[raw, _sigmoid(slope * _logit(raw) + shift)] for raw in KNOT_CONFIDENCES[1:-1]]
    return [[0.0, 0.0], *inner, [1.0, 1.0]]


def _logit(share: float) -> float:
    share = min(1 - _MIN_DISTANCE, max(_MIN_DISTANCE, share))
    return math.log(share / (1 - share))


def _sigmoid(odds: float) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, odds))))
