"""Counters by which the programs of a kernel find out which of them is last.

Every group of captured graphs has a set, and so has every device. Kernels reset what they count, so the launches that
share a set must run one at a time.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

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
