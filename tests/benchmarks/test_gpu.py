"""The benchmark that a GPU is measured with runs through on a CPU, every part of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support import tiny

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "gpu.py"


def run_benchmark(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARK), *map(str, arguments)]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_a_run_on_a_cpu_times_every_step_and_finds_the_texts_the_same(tmp_path):
    model = tiny.folder(tmp_path / "model", rank=0)
    done = run_benchmark("--device", "cpu", "--gaps", 4, "--model", model, "--out", tmp_path, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads((tmp_path / "gpu.json").read_text())
    assert len(found["steps"]) == 9
    assert all(row["ms"] > 0 and row["floor_ms"] > 0 for row in found["steps"])
    assert found["fills"] == {"compared": 4, "same": 4}
    assert found["key_ms"] > 0


def test_without_a_gpu_nothing_is_measured_and_it_says_so(tmp_path):
    done = run_benchmark("--out", tmp_path, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0
    assert "no CUDA device" in done.stdout
    assert not list(tmp_path.iterdir())
