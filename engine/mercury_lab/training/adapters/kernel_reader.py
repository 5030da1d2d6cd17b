"""The network that reads contexts with the C kernels: tokens in, torch tensors out.

Dimensions: T tokens, C width.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from mercury_engine.errors import RequestError
from mercury_engine.models import weights
from mercury_engine.models.cpu import CpuNetwork, layers_for
from mercury_engine.models.decoder_weights import tensor_of
from mercury_engine.models.network import ForwardRequest, KeyValueBlock, KeyValueSegment
from torch import Tensor


class KernelReading(NamedTuple):
    """Hidden states [T,C], and the block of the tokens' keys and values as the kernels keep them."""

    hidden: Tensor
    block: KeyValueBlock


class KernelReader:
    """A reader whose keys and values stay NumPy arrays; `tensors` converts them."""

    def __init__(self, network: CpuNetwork) -> None:
        self._network = network

    def read(self, tokens: Sequence[int], past: Sequence[KeyValueSegment] = ()) -> KernelReading:
        """Read tokens after `past`, from position 0."""
        [(hidden, block)] = self._network.read_together([ForwardRequest(np.array(tokens), past)])
        return KernelReading(tensor_of(hidden), block)

    def rotated(self, block: KeyValueBlock, start: int) -> KeyValueSegment:
        """See `Network.rotated`."""
        return self._network.rotated(block, start)

    def side_by_side(self, blocks: Sequence[KeyValueBlock], start: int) -> KeyValueSegment:
        """See `Network.side_by_side`."""
        return self._network.side_by_side(blocks, start)

    def tensors(self, block: KeyValueBlock) -> KeyValueBlock:
        """The block as tensors, with the bias that the kernels leave out of keys."""
        return KeyValueBlock(tensor_of(self._network.with_bias(block.keys)), tensor_of(block.values))


def kernel_reader(base: Path) -> KernelReader:
    """The base run by the C kernels in one thread. Raises RequestError if they cannot run it."""
    config = weights.read_config(base)
    try:
        return KernelReader(CpuNetwork(base, config, layers_for(config, 1)))
    except (OSError, ValueError) as error:
        raise RequestError(f"the C kernels cannot read for this run ({error}); say --no-kernels") from error
