"""Measures on this machine what a draft costs: a further row of a pass, and a pass of the block drafter."""

import time
from collections.abc import Callable

import numpy as np

from mercury_engine.denoising.draft_choice import PassCosts
from mercury_engine.models.network import BlockDrafter, ForwardRequest, Network, ReaderState

CONTEXT_TOKENS, ROWS = 32, 5
"""Tokens in front of a timed pass, and rows of the longer one."""

SLOTS_DRAWN = 2
"""Slots of a block that are drawn on average; the others are not worth a row."""

SAMPLES = 4
"""Samples from which on the least times count."""

LEAST, MOST = 0.03, 0.4
"""Bounds of a cost, in passes of one row: on a busy machine a measurement may be far off."""


class CostMeter:
    """Takes a sample whenever the engine rests, until there are enough: together they take as long as ten passes."""

    def __init__(self, reader: Network, drafter: BlockDrafter) -> None:
        self._reader, self._drafter = reader, drafter
        self._samples: list[list[float]] = []

    def sample(self) -> PassCosts | None:
        """Time one pass of each kind; the costs when this was the last sample, else None."""
        if len(self._samples) >= SAMPLES:
            return None
        [(_, block)] = self._reader.read_together([ForwardRequest(np.arange(CONTEXT_TOKENS))])
        past = [self._reader.rotated(block, 0)]
        hidden_C = np.zeros(self._reader.config.hidden_size, np.float32)
        state = ReaderState(hidden_C, block.values[:, 0, :, -1], past, CONTEXT_TOKENS - 1)

        def read(rows: int) -> None:
            [(hidden, _)] = self._reader.read_together([ForwardRequest(np.arange(rows), past, CONTEXT_TOKENS)])
            self._reader.log_probabilities(hidden)

        works = (lambda: read(1)), (lambda: read(ROWS)), (lambda: self._draft(state))
        self._samples.append([_seconds(work) for work in works])
        if len(self._samples) < SAMPLES:
            return None
        one, several, drafted = (min(times) for times in zip(*self._samples, strict=True))
        return PassCosts(_bounded((several - one) / (ROWS - 1) / one), _bounded(drafted / one))

    def _draft(self, state: ReaderState) -> None:
        made = self._drafter.denoise(state, 0)
        for slot in range(min(SLOTS_DRAWN, self._drafter.slots)):
            made.best(slot, slot, None)


def _seconds(work: Callable[[], None]) -> float:
    started = time.thread_time()  # other processes delay a thread, but take none of its time
    work()
    return time.thread_time() - started


def _bounded(cost: float) -> float:
    return min(MOST, max(LEAST, cost))
