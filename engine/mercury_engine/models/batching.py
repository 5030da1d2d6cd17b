"""Batches forward passes of the reader: those of several requests become one.

Code that reads is a generator: it yields a `ForwardRequest` and receives a `ForwardResult`.

Dimensions as in `network.py`; W rows whose log-probabilities are wanted.
"""

import time
from collections.abc import Generator, Sequence
from typing import NamedTuple, TypeVar

from mercury_engine.models.arrays import Array, namespace, parted
from mercury_engine.models.network import ForwardRequest, KeyValueBlock, Network

T = TypeVar("T")


class ForwardResult(NamedTuple):
    """Result of a forward: float32 log-probabilities [W,V], and the block of its tokens' keys and values."""

    logp_WV: Array
    block: KeyValueBlock


ForwardSteps = Generator[ForwardRequest, ForwardResult, T]


def run(network: Network, forwards: Sequence[ForwardRequest]) -> list[ForwardResult]:
    """The results of all forwards, run in one pass where the network can; no result depends on the other forwards."""
    read = network.read_together(forwards)
    hidden = [part[list(forward.wanted)] for (part, _), forward in zip(read, forwards, strict=True)]
    rows = namespace(hidden[0]).concatenate(hidden)
    logp = parted(network.log_probabilities(rows) if len(rows) else rows, hidden)
    return [ForwardResult(part, block) for part, (_, block) in zip(logp, read, strict=True)]


def until(deadline: float | None, steps: ForwardSteps[T]) -> ForwardSteps[T | None]:
    """The result of the steps; None if the deadline, a time of `time.perf_counter`, passes before their next pass."""
    try:
        forward = next(steps)
        while deadline is None or time.perf_counter() < deadline:
            forward = steps.send((yield forward))
    except StopIteration as end:
        value: T = end.value
        return value
    steps.close()
    return None


def finished(steps: ForwardSteps[T], network: Network) -> T:
    """The result of the steps, with their passes run one by one."""
    try:
        forward = next(steps)
        while True:
            forward = steps.send(run(network, [forward])[0])
    except StopIteration as end:
        value: T = end.value
        return value
