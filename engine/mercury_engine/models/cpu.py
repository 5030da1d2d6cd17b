"""The network run by the C kernels of `mercury_kernels.cpu`, with weights in the bits they have on disk.

Same interface and numbers as `model.Network` within the error of activations in eight bits. Reader and writer share
all matrices: what either adds to them is a low-rank product of its own.

Dimensions as in `model.py`; one request at a time (B = 1).
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from mercury_kernels.cpu.layers import Layers, Part
from torch import Tensor, nn
from torch.nn import functional as F

from mercury_engine.models import quantized_weights, weights
from mercury_engine.models.network import (
    LENGTH_CLASSES,
    Angles,
    ForwardRequest,
    KeyValueBlock,
    KeyValueSegment,
    ModelConfig,
    Network,
    Packing,
    PositionFrames,
)

ADAPTER_FILES = "adapter*.safetensors"


class CpuNetwork(Network):
    """Reads, and where the folder has an adapter writes; what the adapter adds is loaded when it is first needed."""

    backend = "native"

    @torch.no_grad()
    def __init__(self, folder: Path, config: ModelConfig, layers: Layers) -> None:
        """`layers` are filled with the folder's weights. Raises ModelNotFound and ModelCorrupt."""
        nn.Module.__init__(self)
        self.config, self._folder, self._stack = config, folder, layers
        self.groups = config.num_attention_heads // config.num_key_value_heads
        state = weights.read_tensors(folder)
        change = weights.read_tensors(folder, weights.READER_FILE) if (folder / weights.READER_FILE).is_file() else {}
        quantized_weights.put_reader(self._stack, config, state, change, folder)
        name, shape = "model.embed_tokens.weight", (config.vocab_size, config.hidden_size)
        embedding = weights.checked(weights.unpack(state, name, folder), shape, name, folder).bfloat16()
        self.embedding = nn.Parameter(embedding, requires_grad=False)
        writes = config.adapter_rank > 0
        self.markers = nn.Parameter(embedding.new_zeros(2, config.hidden_size), requires_grad=writes)
        self.length = nn.Parameter(embedding.new_zeros(LENGTH_CLASSES, config.hidden_size)) if writes else None
        self.layers = nn.ModuleList()
        self._writes = False

    def prepare(self) -> None:
        """Load what the writer adds."""
        if self._writes or not self.config.adapter_rank:
            return
        with torch.inference_mode(False), torch.no_grad():
            adapter = weights.read_tensors(self._folder, ADAPTER_FILES)
            quantized_weights.put_writer(self._stack, self.config, adapter, self._folder)
            weights.fill_adapter(self, adapter, self._folder)
        self._writes = True

    def run(
        self,
        x_BRC: Tensor,
        frames: PositionFrames,
        before: Sequence[KeyValueSegment],
        after: Sequence[KeyValueSegment],
        adapted: bool,
    ) -> tuple[Tensor, KeyValueBlock | None]:
        """See `Network.run`; for rows that are written."""
        assert x_BRC.shape[0] == 1, "one request at a time"
        assert adapted and frames.away is not None
        rows = x_BRC.shape[1]
        hidden = None if frames.bias is None else frames.bias.view(self.groups, rows, rows)[0]
        part = Part(rows, _kept(before), _kept(after), hidden)
        return self._stack.run(x_BRC[0], _rows(frames.near), _rows(frames.away), [part])[0][None], None

    def read(
        self, ids_BT: Tensor, past: Sequence[KeyValueSegment] = (), start: int = 0, packing: Packing | None = None
    ) -> tuple[Tensor, KeyValueBlock]:
        """See `Network.read`."""
        assert ids_BT.shape[0] == 1, "one request at a time"
        return self.read_together([ForwardRequest(ids_BT, past, start, packing)])[0]

    def read_together(self, forwards: Sequence[ForwardRequest]) -> list[tuple[Tensor, KeyValueBlock]]:
        """See `Network.read_together`: one pass, in which each forward is a part of its own."""
        sizes = [each.rows for each in forwards]
        x_RC = F.embedding(torch.cat([each.ids_BT[0] for each in forwards]), self.embedding)
        positions = torch.cat([each.start + _places(each) for each in forwards])
        parts = [Part(each.rows, _kept(each.past), hidden_RR=_hidden(each)) for each in forwards]
        out, keys, values = self._stack.run(x_RC, self.angles(positions), None, parts)
        split = zip(out.split(sizes), keys.split(sizes, 3), values.split(sizes, 3), strict=True)
        return [(part[None], KeyValueBlock(k, v)) for part, k, v in split]

    def kept(self, block: KeyValueBlock) -> KeyValueBlock:
        """In eight bits, see `Layers.keep`."""
        return KeyValueBlock(*self._stack.keep(block.keys, block.values))

    def placed(self, block: KeyValueBlock, positions: Tensor) -> KeyValueSegment:
        """The block's side with its tokens at the positions [T] of a frame, in eight bits; see `Layers.place`."""
        return KeyValueSegment(*self._stack.place([(block.keys, block.values)], self.angles(positions)))

    def side_by_side(self, blocks: Sequence[KeyValueBlock], start: int) -> KeyValueSegment:
        """See `Network.side_by_side`; no block is copied before."""
        positions = torch.arange(start, start + sum(block.tokens for block in blocks))
        return KeyValueSegment(
            *self._stack.place([(block.keys, block.values) for block in blocks], self.angles(positions))
        )

    def logits(self, hidden: Tensor) -> Tensor:
        """[...,C] to float32 [...,V]."""
        return self._stack.head(hidden.reshape(-1, hidden.shape[-1])).view(*hidden.shape[:-1], -1)


def layers_for(config: ModelConfig, threads: int) -> Layers:
    """Layers of that shape, still empty. Raises what `Layers` does, and ValueError for keys with biases.

    Those of Qwen2 are so large in a few dimensions that eight bits leave little of the others.
    """
    if config.attention_bias:
        raise ValueError("the kernels keep keys in eight bits, too few for a model with biases")
    return Layers(
        config.num_hidden_layers,
        config.hidden_size,
        config.intermediate_size,
        config.num_key_value_heads,
        config.num_attention_heads // config.num_key_value_heads,
        config.head_dim,
        config.rms_norm_eps,
        threads,
    )


def _places(forward: ForwardRequest) -> Tensor:
    return torch.arange(forward.rows) if forward.packing is None else forward.packing.place[0]


def _hidden(forward: ForwardRequest) -> Tensor | None:
    """Later rows [R,R], and those of other runs."""
    if forward.packing is not None:
        return forward.packing.bias(1, causal=True)[0, 0]
    rows = forward.rows
    return torch.full((rows, rows), float("-inf")).triu(1) if rows > 1 else None


def _kept(sides: Sequence[KeyValueSegment]) -> list[tuple[Tensor, Tensor]]:
    assert all(side.bias is None for side in sides), "no padding among sides"
    return [(side.keys, side.values) for side in sides]


def _rows(angles: Angles) -> Angles:
    """[B,1,1,R,D] to [R,D]."""
    cos, sin = angles
    return cos[0, 0, 0], sin[0, 0, 0]
