"""Forward passes of the reader that wait to be run, so that those of several requests become one.

Whatever reads is a generator: it yields a `ForwardRequest` and goes on with what that gave.

Dimensions as in `model.py`; W rows whose next tokens are wanted.
"""

import time
from collections.abc import Generator, Sequence
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from mercury_engine.models.network import ForwardRequest, KeyValueBlock, Network

T = TypeVar("T")


class ForwardResult(NamedTuple):
    """What came out of a forward: float32 logits [W,V] and the block that its tokens leave."""

    logits_WV: Tensor
    block: KeyValueBlock


ForwardSteps = Generator[ForwardRequest, ForwardResult, T]


def run(network: Network, forwards: Sequence[ForwardRequest]) -> list[ForwardResult]:
    """All of them, in one pass where the network can; what comes out of one does not depend on the others."""
    read = network.read_together(forwards)
    hidden = [part[0, list(forward.wanted)] for (part, _), forward in zip(read, forwards, strict=True)]
    rows = torch.cat(hidden)
    logits = (network.logits(rows) if len(rows) else rows).split([len(part) for part in hidden])
    return [ForwardResult(part, block) for part, (_, block) in zip(logits, read, strict=True)]


def until(deadline: float | None, reading: ForwardSteps[T]) -> ForwardSteps[T | None]:
    """What a generator comes to; None when a time of `time.perf_counter` is over before its next pass."""
    try:
        forward = next(reading)
        while deadline is None or time.perf_counter() < deadline:
            forward = reading.send((yield forward))
    except StopIteration as end:
        value: T = end.value
        return value
    reading.close()
    return None


def finished(reading: ForwardSteps[T], network: Network) -> T:
    """What a generator comes to, its passes run one by one."""
    try:
        forward = next(reading)
        while True:
            forward = reading.send(run(network, [forward])[0])
    except StopIteration as end:
        value: T = end.value
        return value
