"""The element type in which torch multiplies matrices fastest on a device.

A CPU is measured, because its feature flags mislead: one machine that lists bfloat16 multiplies it at 35 GFLOP/s a core
and float32 at 159, another at 193 and 97.
"""

import logging
import time
from functools import cache

import torch
from mercury_engine.device import torch_network

PROBE_ROWS, PROBE_WIDTH = 64, 576
"""The product that is timed: rows of a short prefill by a square matrix of the bundled model."""

PROBE_ROUNDS = 6
"""Timed products of each type; the fastest counts. Both types together take about 5 ms."""

_log = logging.getLogger(__name__)


def fastest(device: torch.device) -> torch.dtype:
    """bfloat16 or float32. A GPU is judged by its compute capability, a CPU by a measurement, once per process."""
    return torch_network.element_type(device) if device.type == "cuda" else _by_measurement()


@cache
def _by_measurement() -> torch.dtype:
    """The faster type on this CPU; rounds alternate, so that other work delays both."""
    seconds = {torch.float32: float("inf"), torch.bfloat16: float("inf")}
    for _ in range(PROBE_ROUNDS):
        for dtype in seconds:
            seconds[dtype] = min(seconds[dtype], _product_seconds(dtype))
    faster = min(seconds, key=seconds.__getitem__)
    times = ", ".join(f"{str(dtype).removeprefix('torch.')} {value * 1e6:.0f} us" for dtype, value in seconds.items())
    _log.info("torch computes in %s on this CPU (one product: %s)", str(faster).removeprefix("torch."), times)
    return faster


def _product_seconds(dtype: torch.dtype) -> float:
    """Seconds of one product."""
    rows, matrix = torch.ones(PROBE_ROWS, PROBE_WIDTH, dtype=dtype), torch.ones(PROBE_WIDTH, PROBE_WIDTH, dtype=dtype)
    started = time.perf_counter()
    torch.nn.functional.linear(rows, matrix)
    return time.perf_counter() - started
