"""Measure every kernel: its error relative to its twin, its time, and the least time for its bytes and operations.

Inputs rotate through enough copies that weights come from memory, not from the second-level cache, and the runs
over all copies are one CUDA graph.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType

import torch
from mercury_engine.models.network import ModelConfig
from mercury_kernels import accept, attention, linear, qkv, reference
from mercury_kernels.operands import Drafts, Matrix, RowPositions, Table
from torch import Tensor

from on_gpu.clock import Clock, spread

COLD_BYTES = 160 << 20
"""Bytes of weights to rotate through, well above 60 MB of cache."""


@dataclass(frozen=True, slots=True)
class Case:
    """One operation at one shape: `call(module, number)` runs it with the inputs of that number."""

    name: str
    kernels: ModuleType
    call: Callable[[ModuleType, int], Tensor | tuple[Tensor, ...]]
    bytes: float
    flops: float
    weights: float


class Cases:
    """The operations of one step of a model, for `rows` rows of one request."""

    def __init__(self, shape: ModelConfig, rows: int, context: int, dtype: torch.dtype, device: torch.device) -> None:
        torch.manual_seed(0)
        self.shape, self.rows, self.context, self.dtype, self.device = shape, rows, context, dtype, device
        self.size = self.real(1).element_size()
        self.width, self.heads = shape.head_dim, shape.num_key_value_heads
        self.x = self.real(rows, shape.hidden_size)
        self.scale = self.real(shape.hidden_size)

    def real(self, *size: int, scale: float = 1.0) -> Tensor:
        return (scale * torch.randn(size, device=self.device)).to(self.dtype)

    def matrices(self, outputs: int, inputs: int) -> list[Matrix]:
        """Enough copies to exceed the cache."""
        size = outputs * inputs * self.size
        count = 1 if self.device.type == "cpu" else min(48, max(1, math.ceil(COLD_BYTES / size)))
        return [Matrix(self.real(outputs, inputs, scale=inputs**-0.5)) for _ in range(count)]

    def all(self) -> Iterator[Case]:
        yield from (self.epilogue(), self.qkv())
        yield self.attention()
        c, inner, q = self.shape.hidden_size, self.shape.intermediate_size, self.heads * self.groups * self.width
        yield self.linear("out", c, q, residual=True)
        yield self.linear("down", c, inner, residual=True)
        yield self.linear("gate_up", 2 * inner, c, norm=True, gated=True)
        yield self.accept()

    @property
    def groups(self) -> int:
        return self.shape.num_attention_heads // self.heads

    def places(self) -> RowPositions:
        positions = torch.arange(self.rows, device=self.device, dtype=torch.int32)
        return RowPositions(positions, *reference.rotary_table(self.rows, self.width, 1e4, self.device))

    def caches(self, pages: int, size: int = 64) -> tuple[Tensor, Tensor]:
        return tuple(self.real(pages, self.heads, size, self.width) for _ in range(2))

    def epilogue(self) -> Case:
        x, places = self.real(self.rows, (self.groups + 2) * self.heads * self.width), self.places()
        keys, values = self.caches(4)

        def call(module: ModuleType, _: int) -> tuple[Tensor, ...]:
            return module.rotate_and_store(x, places, keys, values, places.positions), keys, values

        return Case("rotate_and_store", qkv, call, 3 * x.numel() * self.size, 0, 0)

    def qkv(self) -> Case:
        outputs, inputs = (self.groups + 2) * self.heads * self.width, self.shape.hidden_size
        matrices, places = self.matrices(outputs, inputs), self.places()
        keys, values = self.caches(4)

        def call(module: ModuleType, i: int) -> tuple[Tensor, ...]:
            q = module.project_qkv(
                self.x, self.scale, 1e-6, matrices[i % len(matrices)], places, keys, values, places.positions
            )
            return q, keys, values

        return self._product("project_qkv", qkv, call, outputs, inputs, self.size)

    def attention(self) -> Case:
        columns = max(2, self.context // 64 + 1)
        copies = 1 if self.device.type == "cpu" else 40  # one layer's cache each
        pools = [self.caches(columns + 1) for _ in range(copies)]
        q = self.real(self.rows, self.heads * self.groups, self.width)
        pages = torch.randperm(columns, device=self.device).int()[None] + 1
        ends = torch.tensor([columns], device=self.device, dtype=torch.int32)
        limits = torch.arange(self.rows, device=self.device, dtype=torch.int32) + 1
        table = Table(pages, torch.full_like(pages, 64), ends, ends - 1, limits)

        def call(module: ModuleType, i: int) -> Tensor:
            return module.paged_attention(q, *pools[i % copies], table)

        kept = 2 * columns * 64 * self.heads * self.width * self.size
        flops = 4 * self.rows * self.groups * self.heads * self.width * columns * 64
        return Case("paged_attention", attention, call, kept + 2 * q.numel() * self.size, flops, kept)

    def linear(
        self,
        name: str,
        outputs: int,
        inputs: int,
        norm: bool = False,
        residual: bool = False,
        gated: bool = False,
    ) -> Case:
        matrices = self.matrices(outputs, inputs)
        x = self.real(self.rows, inputs)
        behind = self.real(self.rows, outputs) if residual else None
        scale = self.scale if norm else None

        def call(module: ModuleType, i: int) -> Tensor:
            return module.linear(x, matrices[i % len(matrices)], scale, 1e-6, behind, gated)

        return self._product(f"linear {name}", linear, call, outputs, inputs, self.size)

    def accept(self) -> Case:
        vocabulary, inputs, rows = self.shape.vocab_size, self.shape.hidden_size, 16
        matrices, x = self.matrices(vocabulary, inputs), self.x[:1].repeat(rows, 1)
        lists = torch.zeros(2, vocabulary, dtype=torch.bool, device=self.device)
        numbers = torch.zeros(1, rows, dtype=torch.int32, device=self.device)
        reals, one = torch.zeros(1, rows, device=self.device), numbers[:, 0].clone()

        def call(module: ModuleType, i: int) -> tuple[Tensor, ...]:
            found = numbers.clone(), reals.clone(), one.clone()
            none = numbers, numbers, numbers.view(-1), reals.view(-1)  # no pairs
            made = Drafts(*found, numbers, one, numbers, numbers, reals, *none)
            module.accept(x, matrices[i % len(matrices)], lists, made, vocabulary + 1, self.scale, 1e-6)
            return made.probability, made.accepted

        return self._product("accept (with three small torch kernels)", accept, call, vocabulary, inputs, self.size)

    def _product(self, name: str, kernels: ModuleType, call: Callable, outputs: int, inputs: int, bytes_: int) -> Case:
        weights = outputs * inputs * bytes_
        return Case(name, kernels, call, weights, 2.0 * self.rows * outputs * inputs, weights)


def measure(case: Case, clock: Clock, limits: dict[str, float], seconds: float) -> dict[str, object]:
    """The error relative to the twin, the time, its floor and their ratio."""
    found, expected = (_tuple(case.call(module, 0)) for module in (case.kernels, reference))
    copies = 1 if clock.device.type == "cpu" else max(8, min(48, math.ceil(COLD_BYTES / max(case.weights, 1 << 22))))

    def run() -> None:
        for i in range(copies):
            case.call(case.kernels, i)

    times = [t / copies for t in clock.each(clock.graph(run), seconds)]
    floor = 1e3 * max(case.bytes / limits["bytes_per_s"], case.flops / limits["flops_per_s"])
    row = {
        "kernel": case.name,
        "error": max(_error(*pair) for pair in zip(found, expected, strict=True)),
        "floor_ms": floor,
    }
    return row | spread(times) | {"floor_share": floor / spread(times)["p50_ms"]}


def _tuple(value: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    found = value if isinstance(value, tuple) else (value,)
    return tuple(t.double() for t in found)


def _error(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm().clamp_min(1e-30))
