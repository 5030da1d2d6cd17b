"""Compile in advance in parallel processes, which fill the compilers' caches on disk and measure nothing."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch
from mercury_engine.models.network import ModelConfig

from on_gpu import fills, kernels, shapes
from on_gpu.clock import Clock
from on_gpu.shapes import Point

COMPILED_PARTS = ("kernels", "fills", "compiled")


def start(script: Path, models: int) -> list[subprocess.Popen[bytes]]:
    """Start one process for every model and part."""
    command = [sys.executable, str(script), "--warm"]
    pairs = [[str(number), part] for number in range(models) for part in COMPILED_PARTS]
    return [subprocess.Popen([*command, *pair], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for pair in pairs]


def wait(processes: list[subprocess.Popen[bytes]], seconds: float) -> int:
    """The number of processes that finished in time; the others are killed."""
    end = time.monotonic() + seconds
    for process in processes:
        try:
            process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
    return sum(process.wait() == 0 for process in processes)


def warm(model: ModelConfig, part: str, points: tuple[Point, ...], dtype: torch.dtype, clock: Clock) -> None:
    """Run one part once with one layer."""
    shape = replace(model, num_hidden_layers=1)
    if part == "kernels":
        kernels.COLD_BYTES = 1
        limits = {"bytes_per_s": 1.0, "flops_per_s": 1.0}
        cases = kernels.Cases(shape, points[0].slots + 1, points[0].context, dtype, clock.device)
        for case in cases.all():
            fills.attempt(lambda case=case: kernels.measure(case, clock, limits, 0.0))
        return
    made = shapes.network(shape, dtype, clock.device)
    if part != "fills":
        points = points[:1]
    for point in points:
        measured, fill = fills.Measured(made, point, clock, 0.0), fills.filler(made, [point])
        if part == "fills":
            fills.attempt(lambda m=measured, f=fill: (m.ours(f), m.left_to_right(f)))
        else:
            fills.attempt(lambda m=measured, f=fill: m.compiled(f))
