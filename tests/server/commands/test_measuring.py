"""How a model is measured, and what is said of one that does not run."""

import subprocess
from pathlib import Path

import pytest
from mercury_engine.errors import ModelError

from mercury_lsp.installed_models import measuring


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
