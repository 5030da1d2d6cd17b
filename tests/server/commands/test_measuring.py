"""How a model is measured, and what is said of one that does not run."""

import subprocess
from pathlib import Path

import pytest
from mercury_engine.errors import ModelError

from mercury_lsp.engine_host import memory
from mercury_lsp.installed_models import measuring
from mercury_lsp.installed_models.measuring import KEYS, PLACES
from mercury_lsp.installed_models.record import Measurement, ModelRecord
from mercury_lsp.installed_models.store import Store
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


def test_a_folder_that_is_no_model_is_reported_by_the_process_that_tries_it(tmp_path: Path):
    with pytest.raises(ModelError, match=f"cannot run the model: no .* in {tmp_path}"):
        measuring.measured(tmp_path)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty store on a machine where every model runs and fits; nothing is chosen."""
    monkeypatch.setattr(measuring, "load_engine", lambda settings: FakeEngine())
    monkeypatch.setattr(memory, "shortage", lambda limit_mb, more_mb: None)
    monkeypatch.setattr(measuring, "is_busy", lambda: False)
    return Store(tmp_path / "models")


def test_the_bundled_model_is_measured_first_and_then_what_was_measured_while_busy(store: Store):
    busy, idle, unknown = (store.folder / name for name in ("busy", "idle", "unknown"))
    for folder in (busy, idle, unknown):
        folder.mkdir(parents=True)
    store.write_record("busy", ModelRecord("busy", measured=Measurement(9.0, 9.0, 9.0, was_busy=True)))
    store.write_record("idle", ModelRecord("idle", measured=Measurement(9.0, 9.0, 9.0)))

    def measured() -> dict[str, float]:
        known = {name: store.record(name) for name in ("bundled", "busy", "idle", "unknown")}
        return {name: each.measured.answer_ms for name, each in known.items() if each and each.measured}

    assert measuring.measure_one_missing(store) and measured() == {"bundled": 2.0, "busy": 9.0, "idle": 9.0}
    assert measuring.measure_one_missing(store) and measured() == {"bundled": 2.0, "busy": 2.0, "idle": 9.0}
    assert not measuring.measure_one_missing(store)
    kept = store.record("bundled")
    assert kept is not None and kept.measured is not None and kept.measured.day is not None


def test_a_model_that_does_not_fit_is_not_measured(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "shortage", lambda limit_mb, more_mb: "no memory is left")
    assert not measuring.measure_one_missing(store)
    assert store.record("bundled") is None
