"""Checks of a GPU: its kernels beside their twins, and the times of its steps beside what the card's bandwidth allows.

Dimensions: R rows, T keys, C channels, D head width, V vocabulary.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from mercury_kernels import ops, reference
from mercury_kernels.operands import Matrix, Rows, Slots
from torch import Tensor

from mercury_engine.device.torch_network import TorchNetwork
from mercury_engine.models.decoder import AdaptedLinear, Layer, TorchDecoder

ROWS, KEYS, RANK = 16, 48, 32

TOLERANCE = {torch.bfloat16: 0.02, torch.float16: 0.004, torch.float32: 1e-4}
"""Largest difference of a kernel from its twin in float32, as a share of the largest value."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """A captured step: its shape, its median, and the time in which the card reads the weights once."""

    rows: int
    keys: int
    adapted: bool | str
    milliseconds: float
    floor: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"times_the_floor": round(self.milliseconds / self.floor, 1)}


@torch.no_grad()
def wrong_kernels(decoder: TorchDecoder) -> dict[str, str]:
    """The kernels that fail or differ from their twins at the first layer of a model, and how; run on its device."""
    wrong = dict[str, str]()
    tolerance = TOLERANCE[decoder.embedding.dtype]
    for name, run in _runs(decoder):
        try:
            found, expected = run(ops), run(reference)
        except RuntimeError as error:
            wrong[name] = " ".join(str(error).split())[:300]
            continue
        off = max(
            float((a.float() - b.float()).abs().max() / b.float().abs().max())
            for a, b in zip(found, expected, strict=True)
        )
        if not off <= tolerance:  # NaN is wrong, too
            wrong[name] = f"differs from its twin by {off:.1%} of the largest value"
    return wrong | {name: f"not compiled: {why}" for name, why in ops.broken.items()}


def _runs(decoder: TorchDecoder) -> Iterator[tuple[str, Callable[[Any], tuple[Tensor, ...]]]]:
    """Each operation by its kernel's name, run on the same random numbers by the kernels or by their twins."""
    config, device, dtype = decoder.config, decoder.device, decoder.embedding.dtype
    layer = decoder.layers[0]
    assert isinstance(layer, Layer)
    random = torch.Generator().manual_seed(0)

    def randn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random).to(device, dtype)

    def matrix(part: AdaptedLinear, rank: int = 0) -> Matrix:
        outputs, inputs = part.weight.shape
        down, up = (randn(rank, inputs) * inputs**-0.5, randn(outputs, rank)) if rank else (None, None)
        return Matrix(part.weight, part.bias, down, up, part.scales)

    x, eps, width = randn(ROWS, config.hidden_size), config.rms_norm_eps, config.head_dim
    buffer = randn(2, config.num_key_value_heads, KEYS, width)
    place = torch.arange(ROWS, device=device)
    rows = Rows(place, place + 1, place * 0 + 1, place.new_full((), KEYS - ROWS), *decoder.angles(place))
    q = randn(ROWS, config.num_attention_heads, width)
    head = Matrix(decoder.head_matrix(is_slots=False))
    lists = torch.full((ROWS,), -1, dtype=torch.int32, device=device)
    bits = torch.zeros(1, -(-head.outputs // 32), dtype=torch.int32, device=device)

    def projected(qkv: Matrix, by: Any) -> tuple[Tensor, ...]:
        keys, values = buffer.clone()
        return *by.project_qkv(x, layer.attn_norm, eps, qkv, layer.head_norms, rows, keys, values), keys, values

    def multiplied(out: Matrix, gate_up: Matrix, by: Any) -> tuple[Tensor, ...]:
        wide = by.linear(x, gate_up, layer.ffn_norm, eps, gated=True)
        return by.linear(q.flatten(1), out, residual=x), wide

    def decided(by: Any) -> tuple[Tensor, ...]:
        numbers = [1, 0, torch.inf, 0.5, 0, 1, -1, 2, 3, 1, 0.9, ROWS, *[0.5] * ROWS]
        rule = torch.tensor(numbers, dtype=torch.double, device=device)
        slots = Slots(place * 0, place + 1, place.clone(), rule[:-ROWS], rule[-ROWS:], 0)
        logits = q.flatten(1)[:, :ROWS].float().sort(descending=True).values
        token, sure = by.draw((lists[:, None] + 2 + place).int(), logits, slots)
        return token, sure, by.reveal(token, sure, slots), slots.ids, slots.answer

    for rank in (0, RANK):
        qkv, out, gate_up = (matrix(each, rank) for each in (layer.qkv, layer.out, layer.gate_up))
        yield "project_qkv", partial(projected, qkv)
        yield "linear", partial(multiplied, out, gate_up)
    yield "attention", lambda by: (by.attention(q, *buffer, rows, config.score_factor),)
    yield "answers", lambda by: (by.answers(x, head, bits, lists)[1],)
    yield "reveal", decided


def step_times(network: TorchNetwork) -> list[StepTime]:
    """The captured steps of a network, each run over rows of zeros."""
    step, decoder = network.step, network.decoder
    size = decoder.weight_bytes - (decoder.head is not None) * decoder.embedding.nbytes
    floor = 1e3 * size / bytes_per_second(decoder.device)
    return [StepTime(*shape, milliseconds(partial(step.replay, shape), decoder.device), floor) for shape in step.shapes]


def bytes_per_second(device: torch.device) -> float:
    """Of a large copy, read and written."""
    source = torch.zeros(1 << (30 if torch.cuda.is_available() else 20), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * len(source) / (1e-3 * milliseconds(lambda: target.copy_(source), device))


def milliseconds(work: Callable[[], object], device: torch.device, runs: int = 20) -> float:
    """The median of some runs, each until the device is done."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - began))
    return statistics.median(times)
