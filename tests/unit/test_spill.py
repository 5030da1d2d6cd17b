"""Arrays in a file keep their values when their memory is given back."""

import numpy as np
import pytest
from mercury_engine.spill import Spill


@pytest.mark.parametrize("shape", [(3,), (64, 33), (0, 4)])
def test_values_stay_when_the_memory_is_let_go(shape):
    source = np.random.default_rng(0).integers(-127, 127, shape).astype(np.int8)
    spill = Spill()
    kept = spill.array(source)
    spill.release()
    assert np.array_equal(kept, source)
    assert kept.dtype == source.dtype


def test_rows_that_do_not_lie_side_by_side_are_kept_in_their_order():
    source = np.arange(12, dtype=np.float32).reshape(3, 4).T
    assert np.array_equal(Spill().array(source), source)
