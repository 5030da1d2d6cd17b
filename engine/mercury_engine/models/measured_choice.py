"""Chooses between a GPU and the C kernels by timing a pass of each, for causal models.

Layer by layer, a small model takes longer on a GPU than the C kernels do; a captured pass should not, but may.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mercury_engine.models.arrays import on_host
from mercury_engine.models.network import ForwardRequest, Network
from mercury_engine.models.timing import least_seconds
from mercury_engine.models.weights import weight_bytes

if TYPE_CHECKING:
    from mercury_engine.models.paged_reader import PagedReader

CPU_BYTES_PER_SECOND = 100e9
"""More than a CPU reads of its memory in a second: a pass reads all weights, which gives its least duration."""

CONTEXT_TOKENS, DRAFT_TOKENS = 64, 4
"""Tokens in front of a timed pass, and rows of it: a token and three drafts."""

_log = logging.getLogger(__name__)


class Networks(NamedTuple):
    """The network that reads a model's context, and for a masked model the one that denoises."""

    reader: Network
    denoiser: Network | None
    choice: str = ""
    """Why this device was chosen, for people to read; empty if there was nothing to choose."""
    paged: "PagedReader | None" = None
    """The reader with contexts in pages, which on a GPU runs fills; None where it cannot."""


def faster(folder: Path, on_gpu: Networks, on_cpu: Callable[[], Networks | None]) -> Networks:
    """The networks whose passes take less time; `on_cpu` loads the others, None if the C kernels cannot run the model.

    They are not loaded for a model so large that the GPU wins anyway.
    """
    gpu_seconds = pass_seconds(on_gpu.reader) if on_gpu.paged is None else on_gpu.paged.pass_seconds()
    if gpu_seconds <= weight_bytes(folder) / CPU_BYTES_PER_SECOND or (other := on_cpu()) is None:
        return on_gpu
    cpu_seconds = pass_seconds(other.reader)
    made, lost = (other, on_gpu) if cpu_seconds < gpu_seconds else (on_gpu, other)
    times = f"a pass takes {1000 * cpu_seconds:.1f} ms by C kernels, {1000 * gpu_seconds:.1f} ms on the GPU"
    _log.info("%s: the model runs on %s", times, made.reader.device)
    lost.reader.rest()
    return made._replace(choice=times)


def pass_seconds(network: Network) -> float:
    """The least duration of a pass of a few rows, until its log-probabilities are on the host."""
    _, block = network.read_together([ForwardRequest(np.arange(CONTEXT_TOKENS))])[0]
    rows = ForwardRequest(np.arange(DRAFT_TOKENS), [network.rotated(block, 0)], CONTEXT_TOKENS)

    def run() -> None:
        [(hidden, _)] = network.read_together([rows])
        on_host(network.log_probabilities(hidden))

    return least_seconds(run)
