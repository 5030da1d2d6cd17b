"""The network compiled for a CPU by OpenVINO: int8 weights, activations quantised as they come.

Same interface and numbers as `model.Network` within the error of eight bits. Weights are quantised per output
channel, activations in groups of 32, so linear layers run on VNNI where the processor has it.

For every new shape OpenVINO prepares its operations anew, which takes half the time of a step and keeps memory. So
rows and the keys just before the gap, which change with every key and step, are padded to a few sizes, hidden.

Dimensions as in `model.py`; one request at a time (B = 1).
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mercury_engine.model import AdaptedLinear, Angles, Block, Frames, Layer, ModelConfig, Network, Side, join
from mercury_engine.spill import Spill
from mercury_engine.weights import LOADERS

# Importing openvino reports the import to its makers when this package can be imported. Nothing leaves the machine.
sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]

SHAPES_KEPT = 32
"""Prepared operations that are kept, in each of two stores; with the usual thousands memory grows for hours."""

os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(SHAPES_KEPT))

import openvino as ov  # noqa: E402
from openvino import Node, Type  # noqa: E402
from openvino import opset13 as op  # noqa: E402

HIDDEN = float("-inf")

HERE = 32
"""Keys just before the gap are padded to multiples of this."""

PARTS = ("keys", "values")

Codes = tuple[npt.NDArray[np.int8], Tensor]
"""A matrix [out,in] and its scales [out,1]."""

_TYPES = {torch.bfloat16: Type.bf16, torch.float32: Type.f32}


def compiled(
    source: Network, threads: int, again: Callable[[], Network]
) -> "tuple[OpenVinoNetwork, OpenVinoNetwork | None]":
    """The reader, ready to run, and where there is an adapter the writer.

    The writer is compiled when it is first asked, from weights loaded `again`: most never are, and to add the adapter
    and quantise took a fifth of the time of every start.
    """
    spill, compiler = Spill(), _Compiler(threads)
    head = compiler.request(_Graph(source, spill).head())
    stack = _Graph(source, spill).stack()
    reader = OpenVinoNetwork(source, compiler, lambda: stack, head, spill)
    writer = None
    if source.config.adapter_rank:

        def written() -> ov.Model:
            return _Graph(again(), spill, writes=True).stack()

        writer = OpenVinoNetwork(source, compiler, written, head, spill, writes=True)
    reader.prepare()
    return reader, writer


class _Compiler:
    """Compiles graphs for the processor."""

    def __init__(self, threads: int) -> None:
        self._core = ov.Core()
        self._options = {
            "INFERENCE_NUM_THREADS": threads,
            "ENABLE_CPU_PINNING": False,  # by default every process sits on the first cores, whoever else works there
            "INFERENCE_PRECISION_HINT": "f32",
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": 32,
            "CPU_RUNTIME_CACHE_CAPACITY": SHAPES_KEPT,
            "PERFORMANCE_HINT": "LATENCY",
        }

    def request(self, graph: ov.Model) -> Any:
        """Where the graph takes its inputs and leaves its outputs."""
        return self._core.compile_model(graph, "CPU", self._options).create_infer_request()


class OpenVinoNetwork(Network):
    """A network with its layers compiled: those of the reader, or with the adapter added those of the writer."""

    backend = "openvino"

    @torch.no_grad()
    def __init__(
        self,
        source: Network,
        compiler: _Compiler,
        stack: Callable[[], ov.Model],
        head: Any,
        spill: Spill,
        *,
        writes: bool = False,
    ) -> None:
        config = source.config
        nn.Module.__init__(self)
        self.config, self.groups, self.writes = config, source.groups, writes
        self.embedding, self.head, self.length = source.embedding, source.head, source.length
        self.markers = nn.Parameter(source.markers.detach().to(source.embedding.dtype), requires_grad=False)
        self.layers = nn.ModuleList()
        self.kept = source.embedding.dtype
        self._compiler, self._build, self._spill = compiler, stack, spill
        self._stack: Any = None
        self._head = head
        heads, width = config.num_key_value_heads, config.head_dim
        self._fed: dict[str, Tensor] = {}
        empty = torch.zeros(config.num_hidden_layers, 1, heads, 0, width, dtype=self.kept)
        self._nothing = Side(empty, empty)
        self._sides: dict[str, Side] = {}

    def prepare(self) -> None:
        """Compile, and run once so that all weights are laid out; takes a second or two the first time."""
        if self._stack is not None:
            return
        with torch.inference_mode(False):  # a fill may ask first, and threads that load are not in its mode
            self._stack = self._compiler.request(self._build())
        del self._build  # what it holds
        if self.writes:
            zeros = torch.zeros_like(F.pad(self._nothing.keys, (0, 0, 0, 1)))
            side = [Side(zeros, zeros)]
            self.writer_logits(self.write(torch.zeros(1, 2, dtype=torch.long), side, side, torch.ones(1)))
        else:
            self.logits(self.read(torch.zeros(1, 1, dtype=torch.long))[0])
        self._spill.release()

    def run(
        self, x_BRC: Tensor, frames: Frames, before: Sequence[Side], after: Sequence[Side], adapted: bool
    ) -> tuple[Tensor, Block | None]:
        """See `Network.run`."""
        assert adapted == self.writes and x_BRC.shape[0] == 1, "one compiled network reads or writes one request"
        self.prepare()
        rows = x_BRC.shape[1]
        more = _room(rows) - rows
        self._feed("x", F.pad(x_BRC.float(), (0, 0, 0, more)))
        for name, angles in (("near", frames.near), ("away", frames.away)):
            if angles is not None:
                self._feed_angles(name, angles, more)
        self._feed_side("far", before[:1])
        self._feed_near(before[1:], self._bias(frames.bias, rows, more))
        if adapted:
            self._feed_side("after", after)
        self._stack.infer()
        hidden = self._result(0)[:, :rows]
        if adapted:
            return hidden, None
        keys, values = (self._result(number)[:, :, :, :rows].to(self.kept) for number in (1, 2))
        return hidden, Block(keys, values)

    def _bias(self, given: Tensor | None, rows: int, more: int) -> Tensor:
        """What hides rows from each other [1,1,G*R,R], with so many more rows that nobody sees."""
        if given is None:
            given = torch.zeros(self.groups, rows, rows)
        bias = torch.full((self.groups, rows + more, rows + more), HIDDEN)
        bias[:, :rows, :rows] = given.view(self.groups, rows, rows)
        bias[:, rows:, 0] = 0.0  # they have to see something
        return bias.view(1, 1, -1, rows + more)

    def logits(self, hidden: Tensor) -> Tensor:
        """[...,C] to float32 [...,V]."""
        rows = hidden.reshape(-1, hidden.shape[-1]).float()
        wanted = F.pad(rows, (0, 0, 0, _room(len(rows)) - len(rows))).contiguous()
        self._head.set_tensor("hidden", ov.Tensor(wanted.numpy()))
        self._head.infer()
        out = torch.from_numpy(self._head.get_output_tensor(0).data[: len(rows)].copy())
        return out.view(*hidden.shape[:-1], -1)

    def _feed(self, name: str, value: Tensor) -> None:
        value = value.contiguous()
        self._fed[name] = value  # OpenVINO does not keep the memory of its inputs alive
        self._stack.set_tensor(name, _shared(value))

    def _feed_angles(self, name: str, angles: Angles, more: int) -> None:
        """The first half of the sines negative, so that the graph need not negate half of what it turns."""
        cos, sin = (F.pad(angle[0], (0, 0, 0, more)) for angle in angles)
        half = sin.shape[-1] // 2
        self._feed(f"{name}.cos", cos)
        self._feed(f"{name}.sin", torch.cat((-sin[..., :half], sin[..., half:]), -1))

    def _feed_near(self, sides: Sequence[Side], own: Tensor) -> None:
        """Keys just before the rows, padded; what hides the padding, and the rows `own` [1,1,G*R,R] of each other."""
        side = self._joined(sides)
        tokens = side.keys.shape[3]
        more = -tokens % HERE
        self._feed("bias", torch.cat((F.pad(own.new_zeros(*own.shape[:3], tokens), (0, more), value=HIDDEN), own), -1))
        if self._sides.get("here") is not side:
            self._sides["here"] = side
            self._feed("here.keys", F.pad(side.keys, (0, 0, 0, more)))
            self._feed("here.values", F.pad(side.values, (0, 0, 0, more)))

    def _feed_side(self, name: str, sides: Sequence[Side]) -> None:
        side = self._joined(sides)
        if self._sides.get(name) is side:  # as in the step before: 60 inputs that need not be set again
            return
        self._sides[name] = side
        for part, tensors in (("keys", side.keys), ("values", side.values)):
            for layer, tensor in enumerate(tensors.unbind(0)):
                self._feed(f"{name}.{part}.{layer}", tensor)

    def _joined(self, sides: Sequence[Side]) -> Side:
        return sides[0] if len(sides) == 1 else join(list(sides)) if sides else self._nothing

    def _result(self, number: int) -> Tensor:
        return torch.from_numpy(self._stack.get_output_tensor(number).data.copy())


def _room(rows: int) -> int:
    """To how many rows so many are padded: a quarter more at most, from 8 on."""
    step = 4 if rows <= 24 else 8 if rows <= 64 else 16
    return rows + -rows % step


def _shared(tensor: Tensor) -> ov.Tensor:
    """The same memory for OpenVINO, which has no view of torch's bfloat16."""
    if tensor.dtype == torch.bfloat16:
        return ov.Tensor(tensor.view(torch.uint16).numpy(), list(tensor.shape), Type.bf16)
    return ov.Tensor(tensor.numpy())


class _Graph:
    """Builds the two graphs of a network: all layers, and the head."""

    def __init__(self, source: Network, spill: Spill, *, writes: bool = False) -> None:
        self.source, self.config, self.spill, self.writes = source, source.config, spill, writes
        self.kept = _TYPES[source.embedding.dtype]
        self.inputs: dict[str, Any] = {}
        self.here: list[list[Any]] = []
        """Keys and values just before the rows, by layer."""
        self.lengths: Node | None = None
        self.codes: dict[AdaptedLinear, Codes] = {}

    def stack(self) -> ov.Model:
        """Rows [1,R,C] in; hidden states and, of a reader, keys and values [L,1,H,R,D] out."""
        c: ModelConfig = self.config
        x = self._input("x", [1, -1, c.hidden_size])
        for name in ("near", "away") if self.writes else ("near",):
            for part in ("cos", "sin"):
                self._input(f"{name}.{part}", [1, 1, -1, c.head_dim])
        self._input("bias", [1, 1, -1, -1])
        sides = [self._input(f"here.{part}", [c.num_hidden_layers, *self._side_shape()], self.kept) for part in PARTS]
        self.here = [op.split(op.convert(side, "f32"), op.constant(0), c.num_hidden_layers).outputs() for side in sides]
        linears = [each for layer in self._layers() for each in layer.children() if isinstance(each, AdaptedLinear)]
        with ThreadPoolExecutor(LOADERS) as pool:
            self.codes = dict(zip(linears, pool.map(self._quantised, linears), strict=True))
        kept = []
        for number, layer in enumerate(self._layers()):
            x, keys, values = self._layer(x, number, layer)
            kept.append((keys, values))
        outputs = [_rms_norm(x, self.source.norm, c.rms_norm_eps)]
        if not self.writes:
            outputs += [_stacked(parts) for parts in zip(*kept, strict=True)]
        return ov.Model(outputs, list(self.inputs.values()), "writer" if self.writes else "reader")

    def head(self) -> ov.Model:
        """Hidden states [N,C] to logits [N,V]."""
        hidden = op.parameter([-1, self.config.hidden_size], np.float32, name="hidden")
        hidden.output(0).set_names({"hidden"})
        weight = self.source.embedding if self.source.head is None else self.source.head
        return ov.Model([_matmul(hidden, *self._codes(weight))], [hidden], "head")

    def _input(self, name: str, shape: list[int], kind: Any = np.float32) -> Node:
        made = op.parameter(shape, kind, name=name)
        made.output(0).set_names({name})
        self.inputs[name] = made
        return made

    def _layers(self) -> Iterator[Layer]:
        for layer in self.source.layers:
            assert isinstance(layer, Layer)
            yield layer

    def _layer(self, x: Node, number: int, layer: Layer) -> tuple[Node, Node, Node]:
        c = self.config
        normed = _rms_norm(x, layer.attn_norm, c.rms_norm_eps)
        q, kv = c.num_attention_heads, c.num_key_value_heads
        scale = torch.ones(layer.qkv.weight.shape[0])
        scale[: q * c.head_dim] = c.head_dim**-0.5
        qk, v = _split(_by_head(self._linear(normed, layer.qkv, scale), c.head_dim), 1, [q + kv, kv])
        x = op.add(x, self._linear(self._attend(number, qk, v), layer.out))
        gate_up = self._linear(_rms_norm(x, layer.ffn_norm, c.rms_norm_eps), layer.gate_up)
        gate, up = op.split(gate_up, op.constant(-1), 2).outputs()
        x = op.add(x, self._linear(op.multiply(op.swish(gate), up), layer.down))
        return x, _split(qk, 1, [q, kv])[1], v

    def _linear(self, x: Node, linear: AdaptedLinear, scale: Tensor | None = None) -> Node:
        """With a scale [out], what comes out is multiplied by it."""
        codes, scales = self.codes.pop(linear)
        bias = None if linear.bias is None else linear.bias.detach().float()
        if scale is not None:
            scales, bias = scales * scale[:, None], None if bias is None else bias * scale
        y = _matmul(x, codes, scales)
        return y if bias is None else op.add(y, op.constant(bias.numpy()))

    @torch.no_grad()
    def _quantised(self, linear: AdaptedLinear) -> Codes:
        weight = linear.weight.float()
        if self.writes and linear.up is not None and linear.down is not None:
            weight = weight + linear.up.float() @ linear.down.float()
        return self._codes(weight)

    def _codes(self, weight: Tensor) -> Codes:
        """A matrix [out,in] in int8, one scale per output channel [out,1]."""
        wide = weight.detach().float()
        scales = wide.abs().amax(1, keepdim=True).clamp_min(1e-12) / 127
        return self.spill.array((wide / scales).round_().to(torch.int8).numpy()), scales

    def _attend(self, number: int, qk: Node, v: Node) -> Node:
        """Attention of all query heads to far keys, to those near and the rows' own, and to those behind the gap.

        Every operation costs some microseconds besides what it computes, so queries are scaled by their matrix, keys
        and queries turned together, and long keys never copied.
        """
        c = self.config
        heads, width = [c.num_attention_heads, c.num_key_value_heads], c.head_dim
        grouped = op.constant([1, c.num_key_value_heads, -1, width])
        q, k = _split(self._rotate(qk, "near"), 1, heads)
        q = op.reshape(q, grouped, False)
        here_keys, here_values = (op.squeeze(part[number], op.constant(0)) for part in self.here)
        far_keys, far_values = self._side("far", number)
        near = op.add(op.matmul(q, op.concat([here_keys, k], 2), False, True), self.inputs["bias"])
        scores = [op.matmul(q, far_keys, False, True), near]
        values = [far_values, op.concat([here_values, v], 2)]
        if self.writes:
            away = op.reshape(self._rotate(_split(qk, 1, heads)[0], "away"), grouped, False)
            keys, after_values = self._side("after", number)
            scores.append(op.matmul(away, keys, False, True))
            values.append(after_values)
        weights = op.softmax(op.concat(scores, -1), -1)
        parts = op.variadic_split(weights, op.constant(-1), self._lengths()).outputs()
        attended = [op.matmul(part, of_part, False, False) for part, of_part in zip(parts, values, strict=True)]
        by_head = op.reshape(reduce(op.add, attended), op.constant([1, c.num_attention_heads, -1, width]), False)
        rows_first = op.transpose(by_head, op.constant([0, 2, 1, 3]))
        return op.reshape(rows_first, op.constant([0, 0, c.num_attention_heads * width]), True)

    def _lengths(self) -> Node:
        """How many keys are far, near, and behind the gap."""
        if self.lengths is None:
            sizes = [("far.keys.0", 2), ("bias", 3), ("after.keys.0", 2)][: 3 if self.writes else 2]
            shapes = [(op.shape_of(self.inputs[name]), op.constant([axis])) for name, axis in sizes]
            self.lengths = op.concat([op.gather(shape, axis, op.constant(0)) for shape, axis in shapes], 0)
        return self.lengths

    def _side(self, name: str, number: int) -> tuple[Node, Node]:
        keys, values = (self._input(f"{name}.{part}.{number}", self._side_shape(), self.kept) for part in PARTS)
        return op.convert(keys, "f32"), op.convert(values, "f32")

    def _side_shape(self) -> list[int]:
        return [1, self.config.num_key_value_heads, -1, self.config.head_dim]

    def _rotate(self, x: Node, frame: str) -> Node:
        """Rotary embedding in halves, as `mercury_kernels.reference.rotate`; the sines have the signs."""
        first, second = op.split(x, op.constant(-1), 2).outputs()
        turned = op.concat([second, first], -1)
        cos, sin = self.inputs[f"{frame}.cos"], self.inputs[f"{frame}.sin"]
        return op.add(op.multiply(x, cos), op.multiply(turned, sin))


def _matmul(x: Node, codes: npt.NDArray[np.int8], scales: Tensor) -> Node:
    """x W^T."""
    matrix = op.multiply(op.convert(op.constant(codes, shared_memory=True), "f32"), op.constant(scales.numpy()))
    return op.matmul(x, matrix, False, True)


def _rms_norm(x: Node, weight: Tensor, eps: float) -> Node:
    mean = op.reduce_mean(op.multiply(x, x), op.constant([-1]), True)
    root = op.sqrt(op.add(mean, op.constant(np.float32(eps))))
    scaled = op.multiply(x, op.divide(op.constant(np.float32(1)), root))
    return op.multiply(scaled, op.constant(weight.detach().float().numpy()))


def _by_head(x: Any, width: int) -> Node:
    """[1,R,heads*D] to [1,heads,R,D]."""
    return op.transpose(op.reshape(x, op.constant([0, 0, -1, width]), True), op.constant([0, 2, 1, 3]))


def _split(x: Node, axis: int, sizes: list[int]) -> list[Any]:
    return list(op.variadic_split(x, op.constant(axis), op.constant(sizes)).outputs())


def _stacked(parts: Sequence[Node]) -> Node:
    return op.concat([op.unsqueeze(part, op.constant([0])) for part in parts], 0)
