"""How near a kernel must come to its twin in double precision: relative error of the whole, by dtype."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from mercury_engine.models.decoder_weights import quantised
from torch import Tensor

TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float16: 2e-3}

INTERPRETER = {torch.bfloat16: 2}
"""It cuts bfloat16 off where hardware rounds."""


def close(found: Tensor, expected: Tensor, tolerance: float | None = None) -> None:
    """|found - expected| <= tolerance |expected| as vectors, and no element further off than 8 times its share."""
    assert found.shape == expected.shape
    tolerance = tolerance or TOLERANCE[found.dtype] * (1 if found.is_cuda else INTERPRETER.get(found.dtype, 1))
    found, expected = found.double(), expected.double()
    assert bool(torch.isfinite(found).all())
    assert float((found - expected).norm()) <= tolerance * max(float(expected.norm()), 1e-30)
    if found.numel():
        assert float((found - expected).abs().max()) <= 8 * tolerance * max(float(expected.abs().max()), 1e-30)


def wide(value: Any) -> Any:
    """The same arguments with every plain float in double precision, so that the twin does not round on its way."""
    if isinstance(value, Tensor):
        plain = value.dtype in (torch.float32, torch.bfloat16, torch.float16)
        return value.double() if plain else value
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: wide(getattr(value, field.name)) for field in fields(value)})
    if isinstance(value, dict):
        return {name: wide(one) for name, one in value.items()}
    return tuple(wide(one) for one in value) if isinstance(value, tuple) else value


def coded(weight: Tensor) -> tuple[Tensor, Tensor]:
    """The weight of a `Matrix` in eight bits, and its scales."""
    codes, scales = quantised(weight)
    return codes, scales.T.contiguous()


def randn(*shape: int, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu", scale: float = 1.0):
    """Normal numbers drawn on the CPU, the same for every device."""
    return (scale * torch.randn(*shape)).to(dtype).to(device)
