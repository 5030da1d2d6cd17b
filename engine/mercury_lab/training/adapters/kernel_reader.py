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
from mercury_engine.models.network import ForwardRequest, KeyValueBlock, KeyValueSegment, ModelConfig
from mercury_engine.models.weights import StoredArray
from torch import Tensor


class KernelReading(NamedTuple):
    """Hidden states [T,C], and the block of the tokens' keys and values as the kernels keep them."""

    hidden: Tensor
    block: KeyValueBlock


class KernelReader:
    """A reader whose keys and values stay NumPy arrays; `tensors` converts them."""

    def __init__(self, network: CpuNetwork, key_biases: Sequence[StoredArray]) -> None:
        """`key_biases`: by layer [H,1,D], what the kernels leave out of the keys that they return."""
        self._network, self._key_biases = network, key_biases

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
        keys = block.keys.astype(np.float32)
        for layer, bias in enumerate(self._key_biases):
            keys[layer] += bias
        return KeyValueBlock(tensor_of(keys.astype(block.keys.dtype)), tensor_of(block.values))


def kernel_reader(base: Path) -> KernelReader:
    """The base run by the C kernels in one thread. Raises RequestError if they cannot run it."""
    config = weights.read_config(base)
    try:
        return KernelReader(CpuNetwork(base, config, layers_for(config, 1)), _key_biases(base, config))
    except (OSError, ValueError) as error:
        raise RequestError(f"the C kernels cannot read for this run ({error}); say --no-kernels") from error


def _key_biases(base: Path, config: ModelConfig) -> list[StoredArray]:
    """The biases of keys; with norms of keys, which follow them, the kernels add them."""
    if not config.attention_bias or config.qk_norm:
        return []
    state, shape = weights.read_model(base), (config.num_key_value_heads, 1, config.head_dim)
    names = [f"model.layers.{number}.self_attn.k_proj.bias" for number in range(config.num_hidden_layers)]
    return [weights.unpack(state, name, base).astype(np.float32).reshape(shape) for name in names]
