"""How a model is measured, and what is said of one that does not run."""

import subprocess
from pathlib import Path

import pytest
from mercury_engine.errors import ModelError

from mercury_lsp.installed_models import measuring
from mercury_lsp.installed_models.measuring import KEYS, PLACES
from tests.support.fake_engine import FakeEngine


def test_keys_are_typed_one_by_one_and_the_first_fill_of_a_place_is_left_out():
    engine = FakeEngine()
    found = measuring.measure(engine)
    assert (found.pass_ms, found.answer_ms) == (1.0, 2.0)
    assert len(engine.asked) == (PLACES - 1) * (KEYS + 1)
    one, two = engine.asked_near[:2]
    assert two[:-1] == one
    assert all(request.utility == engine.utility for request in engine.asked)


@pytest.mark.parametrize(
    ("code", "stderr", "said"),
    [
        (-9, "", "SIGKILL.*memory ran out.*smaller model"),
        (1, "Traceback\nMemoryError", "memory ran out.*smaller model"),
        (2, "loading\nmodel_type 'mamba' is not supported", "cannot run the model: model_type 'mamba'"),
        (1, "", "no reason given"),
    ],
)
def test_a_model_that_does_not_run_is_a_clear_error(monkeypatch, code: int, stderr: str, said: str):
    failed = subprocess.CompletedProcess([], code, stdout="", stderr=stderr)
    monkeypatch.setattr(measuring.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(ModelError, match=said):
        measuring.measured(Path("model"))
