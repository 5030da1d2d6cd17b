"""Batches forward passes of the reader: those of several requests become one.

Code that reads is a generator: it yields a `ForwardRequest` and receives a `ForwardResult`.

Dimensions as in `network.py`; W rows whose log-probabilities are wanted.
"""

import time
from collections.abc import Generator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from mercury_engine.models.arrays import Array, namespace, parted
from mercury_engine.models.network import ForwardRequest, KeyValueBlock, Network
from mercury_engine.models.paged_rows import Decided, PagedRows

T = TypeVar("T")

NO_TOKENS = np.empty((0, 0, 0, 0, 0), np.float32)
"""Keys or values of no token."""


class ForwardResult(NamedTuple):
    """Result of a forward: float32 log-probabilities [W,V], and the block of its tokens' keys and values."""

    logp_WV: Array
    block: KeyValueBlock
    decided: Decided = Decided()
    """What was decided about rows in pages, which have no other result."""


ForwardSteps = Generator[ForwardRequest, ForwardResult, T]


def run(network: Network, forwards: Sequence[ForwardRequest]) -> list[ForwardResult]:
    """The results of all forwards, run in one pass where the network can; no result depends on the other forwards."""
    if any(forward.paged is not None for forward in forwards):
        return _run_beside_paged(network, forwards)
    read = network.read_together(forwards)
    hidden = [part[list(forward.wanted)] for (part, _), forward in zip(read, forwards, strict=True)]
    rows = namespace(hidden[0]).concatenate(hidden)
    logp = parted(network.log_probabilities(rows) if len(rows) else rows, hidden)
    return [ForwardResult(*each) for each in zip(logp, (block for _, block in read), strict=True)]


def _run_beside_paged(network: Network, forwards: Sequence[ForwardRequest]) -> list[ForwardResult]:
    """The results of forwards of which some are rows in pages; these share passes of their own."""
    paged = [forward.paged for forward in forwards if forward.paged is not None]
    others = [forward for forward in forwards if forward.paged is None]
    nothing = KeyValueBlock(NO_TOKENS, NO_TOKENS)
    decided = (ForwardResult(NO_TOKENS, nothing, decided=each) for each in paged[0].reader.read_rows(paged))
    results = iter(run(network, others) if others else [])
    return [next(results if forward.paged is None else decided) for forward in forwards]


def decided(rows: PagedRows) -> ForwardSteps[Decided]:
    """What a reader decides about rows in pages."""
    result = yield ForwardRequest(np.array(rows.ids), paged=rows)
    return result.decided


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
