"""GGUF files as model folders."""

import gguf
import numpy as np
import pytest
from mercury_lab.training.conversion import base, gguf_weights
from safetensors.numpy import load_file

from tests.support import tiny_gguf


@pytest.mark.parametrize("kind", ["Q5_1", "Q8_0"])
def test_rounding_a_few_rows_at_a_time_changes_no_value(tmp_path, monkeypatch, kind: str):
    tiny_gguf.write(tmp_path / "q.gguf", gguf.GGMLQuantizationType[kind])
    base.convert_whole(tmp_path / "q.gguf", tmp_path / "whole", "toy")
    monkeypatch.setattr(gguf_weights, "ROWS_AT_ONCE", 7)
    base.convert_whole(tmp_path / "q.gguf", tmp_path / "pieces", "toy")
    whole, pieces = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "pieces"))
    assert whole.keys() == pieces.keys()
    assert all(np.array_equal(whole[name], pieces[name]) for name in whole)
