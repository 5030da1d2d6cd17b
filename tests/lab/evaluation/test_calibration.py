"""Confidence against what is right: reliability, the fits and the files they are made on."""

import random
from itertools import pairwise
from pathlib import Path

import pytest
from mercury_engine.decoding.calibration import Calibration
from mercury_engine.decoding.results import Cut
from mercury_engine.errors import RequestError
from mercury_lab.evaluation import calibration, confidence
from mercury_lab.evaluation.calibration import JudgedCut, JudgedGap

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


def cut(text: str, confidence: float, right: bool = True, stub: bool = False, saved: int = 0) -> JudgedCut:
    return JudgedCut(Cut(text, confidence), right, stub, saved)


def test_the_fit_saves_as_much_as_its_limits_allow():
    sure = [JudgedGap((cut("self.total", 0.9, saved=10),), 10)] * 8
    unsure = [JudgedGap((cut("self.other", 0.6, right=n % 2 == 0, saved=10 * (n % 2 == 0)),), 10) for n in range(8)]
    strict = calibration.fit_utility([*sure, *unsure], Calibration(), wrong=0.1, stubs=0.2)
    generous = calibration.fit_utility([*sure, *unsure], Calibration(), wrong=0.5, stubs=0.2)
    shown = [
        calibration.figures_at([*sure, *unsure], utility, Calibration())["shown"] for utility in (strict, generous)
    ]
    assert shown == [0.5, 1.0]


def test_fitted_and_reported_files_are_of_different_repositories():
    fitting, reported = calibration.fitting_and_reported_files(CODE_FOLDER, None)
    assert not {d.repository for d in fitting} & {d.repository for d in reported}
    assert fitting and reported


def test_no_reported_file_is_fitted_on(tmp_path):
    for name, text in (("reported/a.py", "a = 1\n"), ("other/copy.py", "a = 1\n"), ("other/b.py", "b = 2\n")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    fitting, reported = calibration.fitting_and_reported_files(tmp_path / "reported", tmp_path / "other")
    assert [d.name for d in fitting] == ["b.py"]
    assert [d.name for d in reported] == ["a.py"]
    with pytest.raises(RequestError, match="--fit"):
        calibration.fitting_and_reported_files(tmp_path / "reported", None)
