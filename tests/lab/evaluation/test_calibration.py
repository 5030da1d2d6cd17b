"""Confidence against what is right: reliability, the fits and the files they are made on."""

import random
from itertools import pairwise
from pathlib import Path

import pytest
from mercury_engine.decoding.options import Calibration
from mercury_lab.evaluation import calibration, confidence

CODE_FOLDER = Path(__file__).parents[2] / "data" / "code"


def overconfident(count: int = 4000) -> list[confidence.ScoredFill]:
    """Suggestions of which only the square of the confidence is right."""
    rng = random.Random(0)
    sures = [rng.random() for _ in range(count)]
    return [(sure, rng.random() < sure * sure) for sure in sures]


def test_reliability_counts_every_suggestion_in_the_bin_of_its_confidence():
    rows = confidence.reliability([(0.1, False), (0.12, True), (1.0, True)], bins=5)
    assert [(row["count"], row["right"]) for row in rows] == [(2, 0.5), (1, 1.0)]
    assert rows[0]["confidence"] == pytest.approx(0.11)


def test_the_fit_brings_confidence_nearer_to_what_is_right():
    pairs = overconfident()
    fitting, others = pairs[::2], pairs[1::2]
    curve = confidence.calibration_knots(*confidence.fit_logistic(fitting))
    fitted = [(Calibration(curve).kept(sure), right) for sure, right in others]
    assert confidence.calibration_error(others) > 0.1
    assert confidence.calibration_error(fitted) < 0.05


@pytest.mark.parametrize("pairs", [overconfident(), [], [(0.9, True)] * 5, [(0.1, True), (0.9, False)] * 9])
def test_the_fitted_curve_rises_from_nothing_to_one(pairs):
    curve = confidence.calibration_knots(*confidence.fit_logistic(pairs))
    assert (curve[0], curve[-1]) == ([0.0, 0.0], [1.0, 1.0])
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(curve))
    assert [Calibration(curve).kept(raw) for raw, _ in curve] == [pytest.approx(y) for _, y in curve]


def test_fitted_and_reported_files_are_of_different_repositories():
    fitting, reported = calibration.fitting_and_reported_files(CODE_FOLDER, None)
    assert not {d.repository for d in fitting} & {d.repository for d in reported}
    assert fitting and reported
