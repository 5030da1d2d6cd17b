"""Confidence against what is right: reliability, gates, the fit and the files it is made on."""

import random
from itertools import pairwise
from pathlib import Path

import pytest
from mercury_engine.api import Fill
from mercury_engine.denoising.calibration import Calibration
from mercury_engine.errors import RequestError
from mercury_engine.evaluation import calibration, confidence
from mercury_engine.evaluation.calibration import Ladder, ask_at_every_gate
from mercury_engine.evaluation.gaps import Gap, HeldOutFile, gap_at

HELD_OUT = Path(__file__).parents[2] / "data" / "held_out"


def overconfident(count: int = 4000) -> list[confidence.ScoredFill]:
    """Suggestions of which only the square of the confidence is right."""
    rng = random.Random(0)
    sures = [rng.random() for _ in range(count)]
    return [(sure, rng.random() < sure * sure) for sure in sures]


def gap() -> Gap:
    return gap_at(HeldOutFile(Path("a.py"), "toy/a.py", "python", "value = left + right\n"), 8, 20, "rest_of_line")


def test_reliability_counts_every_suggestion_in_the_bin_of_its_confidence():
    rows = confidence.reliability([(0.1, False), (0.12, True), (1.0, True)], bins=5)
    assert [(row["count"], row["right"]) for row in rows] == [(2, 0.5), (1, 1.0)]
    assert rows[0]["confidence"] == pytest.approx(0.11)


def test_the_calibration_error_is_the_mean_distance_by_count():
    assert confidence.calibration_error([(1.0, True), (0.0, False)]) == 0
    assert confidence.calibration_error([(0.9, False)] * 3 + [(0.5, True)]) == pytest.approx((3 * 0.9 + 0.5) / 4)
    assert confidence.calibration_error([]) == 0


def test_a_gate_shows_what_is_at_least_as_sure():
    rows = confidence.gate_table([(0.2, False), (0.5, True), (0.9, True)], asked=4, gates=(0.0, 0.5, 0.95))
    assert [(row["shown"], row["precision"]) for row in rows] == [(0.75, pytest.approx(2 / 3)), (0.5, 1.0), (0.0, None)]


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


def test_a_gate_is_asked_only_when_the_suggestion_so_far_is_less_sure():
    asked: list[float] = []

    def fill(gap: Gap) -> Fill:
        asked.append(gap.request.give_up_below)
        text, sure = ("left - 1", 0.1) if gap.request.give_up_below <= 0.1 else ("left", 0.5)
        return Fill(text if gap.request.give_up_below <= 0.5 else "", sure, 1, 0.1)

    ladder = ask_at_every_gate(fill, gap(), gates=(0.0, 0.1, 0.2, 0.4, 0.6, 0.8))
    assert asked == [0.0, 0.2, 0.6]
    assert ladder == Ladder(((0.1, False), (0.5, True)), (False, False, True, True, None, None))


def test_shown_and_precision_are_counted_at_every_gate():
    gates = len(confidence.GATES)
    found = [Ladder((), (True,) * gates), Ladder((), (False,) + (None,) * (gates - 1))]
    rows = calibration.gate_rows(found)
    assert (rows[0]["shown"], rows[0]["precision"], rows[1]["shown"], rows[1]["precision"]) == (1.0, 0.5, 0.5, 1.0)


def test_the_least_gate_with_the_wanted_precision_is_chosen():
    rows = [{"gate": g, "shown": 0.5, "precision": p} for g, p in ((0.1, 0.4), (0.3, 0.7), (0.5, 0.6), (0.9, None))]
    assert calibration.gate_for(0.6, rows) == 0.3
    assert calibration.gate_for(0.9, rows) == 0.3
    with pytest.raises(RequestError, match="--limit"):
        calibration.gate_for(0.6, rows[-1:])


def test_fitted_and_reported_files_are_of_different_repositories():
    fitting, reported = calibration.fitting_and_reported_files(HELD_OUT, None)
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
