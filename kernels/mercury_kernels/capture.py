"""Captures work of fixed shape as CUDA graphs; on other devices the work simply runs.

The programs of a kernel find out by counters which of them is last. Every group of captured graphs has a set of them,
and so has every device. Kernels reset what they count, so the launches that share a set must run one at a time.
"""

import logging
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import torch
from torch import Tensor

log = logging.getLogger("mercury_kernels")

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

WARMUPS = 2
"""Runs before a capture, in which kernels compile and libraries allocate workspace."""

COUNTERS = 1 << 16
"""Counters in a set."""

_of_device: dict[torch.device, Tensor] = {}
_chosen = threading.local()


def counters(device: torch.device) -> Tensor:
    """Zeros int32 [COUNTERS]: the set of `counting_in`, else the device's."""
    if (chosen := getattr(_chosen, "counters", None)) is not None:
        return chosen
    if device not in _of_device:
        _of_device[device] = new_counters(device)
    return _of_device[device]


def new_counters(device: torch.device) -> Tensor:
    """A set of counters: zeros int32 [COUNTERS]."""
    return torch.zeros(COUNTERS, dtype=torch.int32, device=device)


@contextmanager
def counting_in(own: Tensor) -> Iterator[None]:
    """Let the kernels that this thread launches use these counters; a graph captured meanwhile keeps them."""
    before, _chosen.counters = getattr(_chosen, "counters", None), own
    try:
        yield
    finally:
        _chosen.counters = before


class Captures(Generic[K, T]):
    """Captured work by key; its results stay at their addresses.

    All graphs share one memory pool and one set of counters, so they must run one at a time. Work may read and write
    only its own intermediate tensors and tensors that stay at their addresses.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._made: dict[K, Callable[[], T]] = {}
        self._counters = new_counters(device)
        self._pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None

    def __iter__(self) -> Iterator[K]:
        return iter(self._made)

    def prepare(self, key: K, work: Callable[[], T]) -> None:
        """Make the work ready to `run`. This runs it a few times, so fill its inputs afterwards."""
        if key in self._made:
            return
        with counting_in(self._counters):
            self._made[key] = self._capture(work) if self.device.type == "cuda" else work

    def run(self, key: K) -> T:
        """Enqueue prepared work on the current stream, and return its results."""
        with counting_in(self._counters):
            return self._made[key]()

    def _capture(self, work: Callable[[], T]) -> Callable[[], T]:
        side = torch.cuda.Stream(self.device)
        side.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(side):
            for _ in range(WARMUPS):
                work()
        torch.cuda.current_stream(self.device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._pool, stream=side, capture_error_mode="thread_local"):
                results = work()
        except RuntimeError as error:
            if isinstance(error, torch.OutOfMemoryError):
                raise
            log.warning("this work cannot be captured and runs launch by launch (slower, same result): %s", error)
            torch.cuda.synchronize(self.device)
            return work

        def replay() -> T:
            graph.replay()
            return results

        return replay
