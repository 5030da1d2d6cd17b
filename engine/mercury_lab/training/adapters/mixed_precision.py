"""A network for CPUs that multiply faster in bfloat16: its frozen matrices are bfloat16, the rest is float32."""

from typing import Any, Literal, get_args

import torch
from mercury_engine.models.decoder import Adapted, AdaptedLinear, TorchDecoder
from mercury_engine.models.network import ModelConfig
from mercury_engine.models.weights import FUSED_MATRICES
from torch import Tensor, nn
from torch.nn import functional as F

from mercury_lab.training import element_type

Precision = Literal["float32", "mixed"]
"""What frozen matrices are multiplied in, float32 or bfloat16; the rest is float32."""

PRECISIONS: tuple[Precision, ...] = get_args(Precision)


def measured_precision(device: torch.device) -> Precision:
    """The precision that multiplies faster on this device."""
    return "mixed" if element_type.fastest(device) is torch.bfloat16 else "float32"


class BFloat16Product(torch.autograd.Function):
    """x W^T in bfloat16, with W [out,in] in bfloat16; x [...,in], the product and the gradient keep their dtype."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(weight)
        return F.linear(x.bfloat16(), weight).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (weight,) = ctx.saved_tensors
        return (grads[0].bfloat16() @ weight).to(grads[0].dtype), None


class MixedPrecisionLinear(AdaptedLinear):
    """An AdaptedLinear with its frozen matrix in bfloat16; shares the adapter of the one it is made from."""

    def __init__(self, source: AdaptedLinear) -> None:
        nn.Module.__init__(self)
        self.named = {}
        self.weight = nn.Parameter(source.weight.detach().bfloat16(), requires_grad=False)
        self.bias, self.down, self.up = source.bias, source.down, source.up

    def forward(self, x: Tensor, adapted: Adapted) -> Tensor:
        y: Tensor = BFloat16Product.apply(x, self.weight)
        y = y if self.bias is None else y + self.bias
        if adapted and self.down is not None and self.up is not None:
            y = y + F.linear(F.linear(x, self.down), self.up)
        return y


class MixedPrecisionNetwork(TorchDecoder):
    """A network whose frozen matrices can be converted once it is filled; trained parameters keep their names."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self._head: Tensor | None = None

    def convert_frozen(self) -> None:
        """Convert the frozen matrices to bfloat16."""
        for layer in self._layers():
            for name in FUSED_MATRICES:
                setattr(layer, name, MixedPrecisionLinear(getattr(layer, name)))
        self._head = (self.embedding if self.head is None else self.head).detach().bfloat16()

    def logits(self, hidden: Tensor) -> Tensor:
        """See `TorchDecoder.logits`."""
        if self._head is None:
            return super().logits(hidden)
        product: Tensor = BFloat16Product.apply(hidden, self._head)
        return self.scaled(product)
