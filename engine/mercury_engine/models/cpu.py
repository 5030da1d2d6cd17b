"""The network run by the C kernels of `mercury_kernels.cpu`, with weights in the bits they have on disk.

Same interface and numbers as `torch_network.TorchNetwork`, within the error of 8-bit activations. Reader and writer
share all matrices; what either adds to them is a separate low-rank product.

Dimensions as in `network.py`; one request at a time (B = 1).
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from mercury_kernels.cpu.layers import Layers, Part
from torch import Tensor
from torch.nn import functional as F

from mercury_engine.models import quantized_weights, weights
from mercury_engine.models.network import (
    LENGTH_CLASSES,
    Angles,
    ForwardRequest,
    KeyValueBlock,
    KeyValueSegment,
    ModelConfig,
    Packing,
    canvas_frames,
    embed,
    length_log_probabilities,
    position_angles,
    with_marker_logits,
)

ADAPTER_FILES = "adapter*.safetensors"


class CpuNetwork:
    """Implements `Network`; the writer's additions are loaded when they are first needed."""

    backend = "native"

    @torch.no_grad()
    def __init__(self, folder: Path, config: ModelConfig, layers: Layers) -> None:
        """Fill `layers` with the folder's weights. Raises ModelNotFound and ModelCorrupt."""
        self.config, self._folder, self._stack = config, folder, layers
        state = weights.read_tensors(folder)
        change = weights.read_tensors(folder, weights.READER_FILE) if (folder / weights.READER_FILE).is_file() else {}
        quantized_weights.put_reader(self._stack, config, state, change, folder)
        name, shape = "model.embed_tokens.weight", (config.vocab_size, config.hidden_size)
        self.embedding = weights.checked(weights.unpack(state, name, folder), shape, name, folder).bfloat16()
        self.markers = self.embedding.new_zeros(2, config.hidden_size)
        self.length: Tensor | None = None
        """The length head, once the writer is prepared; None for a writer trained without one."""
        self._writes = False

    @property
    def device(self) -> torch.device:
        return self.embedding.device

    def prepare(self) -> None:
        """Load what the writer adds. Raises ModelNotFound and ModelCorrupt."""
        if self._writes or not self.config.adapter_rank:
            return
        with torch.inference_mode(False), torch.no_grad():
            adapter = weights.read_tensors(self._folder, ADAPTER_FILES)
            quantized_weights.put_writer(self._stack, self.config, adapter, self._folder)
            if "length" in adapter:
                self.length = self._adapter_rows(adapter, "length", LENGTH_CLASSES)
            self.markers = self._adapter_rows(adapter, "markers", 2)
        self._writes = True

    def _adapter_rows(self, adapter: dict[str, Tensor], name: str, rows: int) -> Tensor:
        found = weights.adapter_tensor(adapter, name, (rows, self.config.hidden_size), self._folder)
        return found.to(self.embedding.dtype)

    def read(
        self, ids_BT: Tensor, past: Sequence[KeyValueSegment] = (), start: int = 0, packing: Packing | None = None
    ) -> tuple[Tensor, KeyValueBlock]:
        """See `Network.read`."""
        assert ids_BT.shape[0] == 1, "one request at a time"
        return self.read_together([ForwardRequest(ids_BT, past, start, packing)])[0]

    def read_together(self, forwards: Sequence[ForwardRequest]) -> list[tuple[Tensor, KeyValueBlock]]:
        """See `Network.read_together`: one pass, with each forward a part of it."""
        sizes = [each.rows for each in forwards]
        x_RC = F.embedding(torch.cat([each.ids_BT[0] for each in forwards]), self.embedding)
        positions = torch.cat([each.start + _places(each) for each in forwards])
        parts = [Part(each.rows, _kept(each.past), hidden_RR=_hidden(each)) for each in forwards]
        out, keys, values = self._stack.run(x_RC, self._angles(positions), None, parts)
        split = zip(out.split(sizes), keys.split(sizes, 3), values.split(sizes, 3), strict=True)
        return [(part[None], KeyValueBlock(k, v)) for part, k, v in split]

    def write(
        self,
        ids_BR: Tensor,
        before: Sequence[KeyValueSegment],
        after: Sequence[KeyValueSegment],
        ends_B: Tensor,
        packing: Packing | None = None,
    ) -> Tensor:
        """See `Network.write`."""
        assert ids_BR.shape[0] == 1, "one request at a time"
        self.prepare()
        frames = canvas_frames(self._angles, ids_BR, ends_B, packing, groups=1)
        assert frames.away is not None
        hidden_RR = None if frames.bias is None else frames.bias[0, 0]
        part = Part(ids_BR.shape[1], _kept(before), _kept(after), hidden_RR)
        x_RC = embed(ids_BR[0], self.embedding, self.markers)
        return self._stack.run(x_RC, _rows(frames.near), _rows(frames.away), [part])[0][None]

    def kept(self, block: KeyValueBlock) -> KeyValueBlock:
        """The block in eight bits, see `Layers.keep`."""
        return KeyValueBlock(*self._stack.keep(block.keys, block.values))

    def rotated(self, block: KeyValueBlock, start: int) -> KeyValueSegment:
        """See `Network.rotated`; in eight bits."""
        return self.side_by_side([block], start)

    def side_by_side(self, blocks: Sequence[KeyValueBlock], start: int) -> KeyValueSegment:
        """See `Network.side_by_side`; in eight bits, without copying the blocks first, see `Layers.place`."""
        angles = self._angles(torch.arange(start, start + sum(block.tokens for block in blocks)))
        return KeyValueSegment(*self._stack.place([(block.keys, block.values) for block in blocks], angles))

    def logits(self, hidden: Tensor) -> Tensor:
        """[...,C] to float32 [...,V]."""
        return self._stack.head(hidden.reshape(-1, hidden.shape[-1])).view(*hidden.shape[:-1], -1)

    def writer_logits(self, hidden: Tensor) -> Tensor:
        """See `Network.writer_logits`."""
        return with_marker_logits(self.logits(hidden), hidden, self.markers)

    def lengths(self, hidden: Tensor) -> Tensor:
        """See `length_log_probabilities`."""
        return length_log_probabilities(hidden, self.length)

    def _angles(self, positions: Tensor) -> Angles:
        return position_angles(self.config, positions)


def layers_for(config: ModelConfig, threads: int) -> Layers:
    """Empty layers of the model's shape. Raises what `Layers` raises, and ValueError for keys with biases.

    The biases of Qwen2 are so large in a few dimensions that eight bits leave little precision for the others.
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
    """Additive mask [R,R] that hides later rows and rows of other runs."""
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
