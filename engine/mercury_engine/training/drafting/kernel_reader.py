"""The reader of a drafting run on the C kernels: tokens in, torch tensors out.

Dimensions: P places, T tokens, C width, V vocabulary.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from torch import Tensor

from mercury_engine.models.cpu import CpuNetwork
from mercury_engine.models.decoder_weights import tensor_of
from mercury_engine.models.network import ForwardRequest, KeyValueBlock, KeyValueSegment


class KernelReading(NamedTuple):
    """Hidden states [T,C], and the block of the tokens' keys and values as the kernels keep them."""

    hidden: Tensor
    block: KeyValueBlock


class KernelReader:
    """A reader whose keys and values stay NumPy arrays; `tensors` converts them."""

    def __init__(self, network: CpuNetwork) -> None:
        self._network = network

    def read(self, tokens: Sequence[int], past: Sequence[KeyValueSegment] = ()) -> KernelReading:
        """Read tokens behind `past`, from position 0."""
        [(hidden, block)] = self._network.read_together([ForwardRequest(np.array(tokens), past)])
        return KernelReading(tensor_of(hidden), block)

    def read_each(
        self, tokens: Sequence[int], pasts: Sequence[Sequence[KeyValueSegment]], positions: Sequence[int]
    ) -> tuple[Tensor, list[KeyValueBlock]]:
        """Read one token behind each past in one pass; hidden states [P,C] and the blocks."""
        each = zip(tokens, pasts, positions, strict=True)
        read = self._network.read_together([ForwardRequest(np.array([t]), past, at) for t, past, at in each])
        return tensor_of(np.concatenate([hidden for hidden, _ in read])), [block for _, block in read]

    def logits(self, hidden: Tensor) -> Tensor:
        """[P,C] to log-probabilities [P,V], which are logits too."""
        return tensor_of(self._network.log_probabilities(hidden.float().numpy()))

    def rotated(self, block: KeyValueBlock, start: int) -> KeyValueSegment:
        """See `Network.rotated`."""
        return self._network.rotated(block, start)

    def side_by_side(self, blocks: Sequence[KeyValueBlock], start: int) -> KeyValueSegment:
        """See `Network.side_by_side`."""
        return self._network.side_by_side(blocks, start)

    def tensors(self, block: KeyValueBlock) -> KeyValueBlock:
        """The block as tensors, with the bias that the kernels leave out of keys."""
        return KeyValueBlock(tensor_of(self._network.with_bias(block.keys)), tensor_of(block.values))
