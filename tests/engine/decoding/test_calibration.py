"""Calibration maps confidence to the probability that a fill is kept, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mercury_engine.decoding.options import Calibration

KNOTS = [[0.0, 0.0], [0.2, 0.5], [0.6, 0.5], [1.0, 0.9]]


def test_without_knots_nothing_changes():
    assert Calibration().kept(0.3) == Calibration().raw(0.3) == pytest.approx(0.3)


def test_between_knots_it_is_interpolated():
    assert Calibration(KNOTS).kept(0.1) == pytest.approx(0.25)
    assert Calibration(KNOTS).kept(0.8) == pytest.approx(0.7)


@given(st.floats(0, 0.9))
def test_the_round_trip_never_falls_below_the_probability(kept):
    calibration = Calibration(KNOTS)
    assert calibration.kept(calibration.raw(kept)) >= kept - 1e-9
