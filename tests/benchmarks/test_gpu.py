"""The benchmark that a GPU is measured with runs through on a CPU, every part of it."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

from tests.support import thorough, tiny

ROOT = Path(__file__).parents[2]


@pytest.fixture
def budgets(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("on_gpu.budgets")


def test_figures_are_held_against_their_budgets_and_what_is_missing_is_not_met(budgets):
    rows = budgets.held(
        {"passes": [{"model": "bundled 135M", "pass_ms": 0.4}, {"model": "Dream 7B shape", "failed": ""}]}
    )
    assert [row["met"] for row in rows] == [True, None, None]
    assert not budgets.held({"passes": [{"model": "bundled 135M", "pass_ms": 0.5}]})[0]["met"]


def run_benchmark(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(not thorough.GAPS, reason="makes all kernels run in the interpreter: make interpreted")
def test_a_rehearsal_runs_every_part_and_none_of_them_fails(tmp_path):
    done = run_benchmark("--rehearse", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr[-2000:]
    assert "failed" not in done.stdout
    found = json.loads((tmp_path / "gpu-rehearsal.json").read_text())
    assert (found["fallbacks"], found["left_out"]) == ({}, [])
    assert all(row["error"] < 0.01 for row in found["kernels"])
    assert len({row["kernel"] for row in found["kernels"]}) == 9
    assert all(row["pass_ms"] > 0 for row in found["passes"])
    assert found["real_fills"]["agreement"]["same"] == 1.0
    assert found["real_fills"]["keys"]["key"]["count"] > 0
    assert len(found["budgets"]) == 3


def test_the_hosts_work_for_a_key_is_measured_without_a_pass_of_the_model(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    host = importlib.import_module("on_gpu.host")
    monkeypatch.setattr(host, "ROUNDS", 2)
    measured = host.HostTime(tiny.folder(tmp_path / "model", rank=0), 1)
    monkeypatch.setattr(measured.engine.reader.decoder, "read", lambda *_: pytest.fail("the model was run"))
    found = measured.measure()
    assert found["keys"] >= 6
    assert measured.passes.count >= 2 * found["keys"] * found["steps"]
    assert 1 < found["steps"] < host.SLOTS
    assert 0 < found["step_ms"] <= found["key_ms"] <= found["key_p90_ms"]


def test_without_a_gpu_nothing_is_measured_and_it_says_so(tmp_path):
    done = run_benchmark("--out", str(tmp_path), CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0
    assert "no CUDA device" in done.stdout
    assert not list(tmp_path.iterdir())
