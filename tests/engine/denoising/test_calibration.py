"""Confidence becomes the chance that a fill is kept, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mercury_engine.denoising.calibration import Calibration

KNOTS = [[0.0, 0.0], [0.2, 0.5], [0.6, 0.5], [1.0, 0.9]]


def test_without_knots_nothing_changes():
    assert Calibration().kept(0.3) == Calibration().raw(0.3) == pytest.approx(0.3)


def test_between_knots_it_is_interpolated():
    assert Calibration(KNOTS).kept(0.1) == pytest.approx(0.25)
    assert Calibration(KNOTS).kept(0.8) == pytest.approx(0.7)


def test_a_level_stretch_gives_its_least_confidence():
    assert Calibration(KNOTS).raw(0.5) == pytest.approx(0.2)


def test_what_no_confidence_reaches_asks_for_certainty():
    assert Calibration(KNOTS).raw(0.95) == 1.0


@given(st.floats(0, 0.9))
def test_back_and_forth_never_lets_through_less_than_asked(kept):
    calibration = Calibration(KNOTS)
    assert calibration.kept(calibration.raw(kept)) >= kept - 1e-9
