"""Operands: the groups of tensors that the operations take and return.

Dimensions: M rows, T keys, H key heads, D head width.
"""

from dataclasses import dataclass

from torch import Tensor

from mercury_kernels.cpu.blocks import GROUP


@dataclass(frozen=True, slots=True)
class Matrix:
    """A linear map [out,in]: x W^T + b, with an adapter of rank N plus (x A^T) B^T. arXiv 2106.09685."""

    weight: Tensor
    """Floats, or int8 codes with `scales`."""
    bias: Tensor | None = None
    down: Tensor | None = None
    """A [N,in]."""
    up: Tensor | None = None
    """B [out,N]."""
    scales: Tensor | None = None
    """float16 [in/GROUP,out]; weight [o,i] is code [o,i] times scale [i // GROUP,o], the arithmetic of GGUF's Q8_0."""

    @property
    def outputs(self) -> int:
        return self.weight.shape[0]

    @property
    def weight_bytes(self) -> float:
        """Bytes of a weight, with its share of a scale."""
        return self.weight.element_size() + (0 if self.scales is None else self.scales.element_size() / GROUP)


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """Where rows stand: the cosines and sines of their positions, float32 [M,D/2], and their slots in the keys."""

    cos: Tensor
    sin: Tensor
    slots: Tensor
    """int32 [M]."""


@dataclass(frozen=True, slots=True)
class Visibility:
    """Which keys rows see: those of order 0, and those whose order is from the row's `first` to its `limit`."""

    order: Tensor
    """int32 [T]."""
    first: Tensor
    """int32 [M]."""
    limit: Tensor
    """int32 [M]."""
    used: Tensor
    """Scalar int32: no row sees a key from this one on."""
