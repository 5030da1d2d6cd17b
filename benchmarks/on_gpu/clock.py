"""Time work on a device, and measure the two peak rates from which floors are computed."""

import statistics
import time
from collections.abc import Callable

import torch

Work = Callable[[], object]


class Clock:
    """Measures milliseconds with device events on a GPU, with the processor's clock elsewhere."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def each(self, work: Work, seconds: float, least: int = 3, most: int = 300, warm: int = 2) -> list[float]:
        """The times of single runs, as many as fit in `seconds`."""
        for _ in range(warm):
            work()
        self.wait()
        times: list[float] = []
        end = time.perf_counter() + seconds
        while len(times) < least or (len(times) < most and time.perf_counter() < end):
            times.append(self._device_time(work) if self.device.type == "cuda" else self._host_time(work))
        return times

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def graph(self, work: Work) -> Work:
        """The work captured as a CUDA graph; unchanged on other devices."""
        if self.device.type != "cuda":
            return work
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                work()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        return graph.replay

    def _device_time(self, work: Work) -> float:
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop)

    def _host_time(self, work: Work) -> float:
        start = time.perf_counter()
        work()
        self.wait()
        return 1e3 * (time.perf_counter() - start)


def spread(times: list[float]) -> dict[str, float]:
    """p50, p95, p99 and the count."""
    ordered = sorted(times)
    p95, p99 = (ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.95, 0.99))
    return {"p50_ms": statistics.median(ordered), "p95_ms": p95, "p99_ms": p99, "count": len(ordered)}


def ceilings(clock: Clock, tiny: bool) -> dict[str, float]:
    """Bytes per second of a large copy (read and written), and bf16 operations per second of a large product."""
    size = 1 << (20 if tiny else 31)
    source = torch.empty(size, dtype=torch.uint8, device=clock.device).random_(0, 255)
    target = torch.empty_like(source)
    copy = statistics.median(clock.each(lambda: target.copy_(source), 1.0, most=20))
    side = 128 if tiny else 8192
    a, b = (torch.randn(side, side, device=clock.device).bfloat16() for _ in range(2))
    product = statistics.median(clock.each(lambda: a @ b, 1.0, most=20))
    return {"bytes_per_s": 2 * size / (1e-3 * copy), "flops_per_s": 2 * side**3 / (1e-3 * product)}


def attempt(work: Callable[[], dict[str, object]]) -> dict[str, object]:
    """The work's result, or the error instead: one failed comparison must not end the run."""
    try:
        return work()
    except Exception as error:
        torch.cuda.empty_cache()
        return {"failed": f"{type(error).__name__}: {str(error)[:300]}"}
