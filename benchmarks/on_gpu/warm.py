"""Compile in advance in parallel processes, which fill the compilers' caches on disk and measure nothing."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch
from mercury_engine.models.network import ModelConfig

from on_gpu import kernels
from on_gpu.clock import Clock, attempt
from on_gpu.shapes import CONTEXT, ROWS


def start(script: Path, models: int) -> list[subprocess.Popen[bytes]]:
    """Start one process for every model."""
    command = [sys.executable, str(script), "--warm"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return [subprocess.Popen([*command, str(number)], **quiet) for number in range(models)]


def wait(processes: list[subprocess.Popen[bytes]], seconds: float) -> int:
    """The number of processes that finished in time; the others are killed."""
    end = time.monotonic() + seconds
    for process in processes:
        try:
            process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
    return sum(process.wait() == 0 for process in processes)


def warm(model: ModelConfig, dtype: torch.dtype, clock: Clock) -> None:
    """Run every kernel once, at the shapes of one layer."""
    kernels.COLD_BYTES = 1
    limits = {"bytes_per_s": 1.0, "flops_per_s": 1.0}
    for case in kernels.Cases(replace(model, num_hidden_layers=1), ROWS, CONTEXT, dtype, clock.device).all():
        attempt(lambda case=case: kernels.measure(case, clock, limits, 0.0))
