"""Where a typed key's time goes: kernels, copies and the host's work, as a table and as a trace for a browser."""

from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from on_gpu.real_fills import RealFills

ROWS = 40
"""Rows of the table."""


def trace(real: RealFills, out: Path) -> str:
    """The table of the keys of one gap, behind warm caches; also written to `out`, with the trace."""
    engine, on_gpu = real.engine(torch.float32 if real.tiny else None), real.clock.device.type == "cuda"
    for gap in real.gaps:
        real.typed_into(engine, gap)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=activities) as found:
        real.typed_into(engine, real.gaps[0])
    found.export_chrome_trace(str(out / "key-trace.json.gz"))
    table: str = found.key_averages().table(
        sort_by="self_device_time_total" if on_gpu else "self_cpu_time_total", row_limit=ROWS
    )
    (out / "key-profile.txt").write_text(table)
    return table
