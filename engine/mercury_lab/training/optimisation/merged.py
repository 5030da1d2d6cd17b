"""A low-rank change that is added to the frozen matrix before the product, as when the model is loaded.

The product then costs what it costs without a change; only the change's own gradients are of low rank. Worth it where
every row is changed, as in a reader.
"""

from typing import Any

import torch
from mercury_engine.models.decoder import Adapted, AdaptedLinear
from torch import Tensor, nn
from torch.nn import functional as F


class MergedProduct(torch.autograd.Function):
    """x M^T for M = W + B A; the gradients of A [N,in] and B [out,N] never build that of M."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, merged: Tensor, down: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(x, merged, down, up)
        return F.linear(x, merged)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, Tensor, Tensor]:
        x, merged, down, up = ctx.saved_tensors
        rows, grad = x.flatten(0, -2), grads[0].flatten(0, -2)
        of_down = (grad @ up.to(grad.dtype)).t() @ rows
        of_up = grad.t() @ (rows @ down.to(rows.dtype).t())
        return (grad @ merged).view(x.shape), None, of_down.to(down.dtype), of_up.to(up.dtype)


class MergedLinear(AdaptedLinear):
    """An AdaptedLinear whose adapter always applies; it takes over the parameters of the one it is made from."""

    def __init__(self, source: AdaptedLinear) -> None:
        nn.Module.__init__(self)
        self.named = {}
        self.weight, self.bias, self.down, self.up = source.weight, source.bias, source.down, source.up
        self._merged: Tensor | None = None
        self._versions = (-1, -1)

    def forward(self, x: Tensor, adapted: Adapted) -> Tensor:
        assert self.down is not None and self.up is not None, "a merged matrix has a change"
        y: Tensor = MergedProduct.apply(x, self.merged(self.down, self.up), self.down, self.up)
        return y if self.bias is None else y + self.bias

    @torch.no_grad()
    def merged(self, down: Tensor, up: Tensor) -> Tensor:
        """W + B A [out,in] in W's dtype, computed again when the change has been written to since."""
        versions = (down._version, up._version)
        if self._merged is None or self._versions != versions:
            dtype = self.weight.dtype
            self._merged, self._versions = torch.addmm(self.weight, up.to(dtype), down.to(dtype)), versions
        return self._merged
