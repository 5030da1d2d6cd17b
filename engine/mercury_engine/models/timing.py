"""Times passes of a model."""

import time
from collections.abc import Callable

WARM_UP_PASSES, TIMED_PASSES = 2, 5


def least_seconds(run: Callable[[], object]) -> float:
    """The least duration of a pass, after a few to warm up."""
    seconds = []
    for _ in range(WARM_UP_PASSES + TIMED_PASSES):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return min(seconds[WARM_UP_PASSES:])
