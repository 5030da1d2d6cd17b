"""Runs of different lengths as one sequence of rows without padding: for CPUs, where padding costs what rows cost.

All runs share the matrix products; attention is computed run by run.

Dimensions: R rows, H key heads, G query heads per key head, T keys before a run, n rows of a run, D head width.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from mercury_engine.kv_cache.cache import TokenIds
from mercury_engine.models.decoder import Attention, PositionFrames, TorchDecoder
from mercury_engine.models.network import KeyValueBlock, KeyValueSegment
from mercury_kernels.ops import Segment, causal_attention
from torch import Tensor


def read_runs(
    network: TorchDecoder,
    runs: Sequence[TokenIds],
    before: Sequence[KeyValueSegment] = (),
    starts: Sequence[int] | None = None,
) -> tuple[list[Tensor], list[KeyValueBlock]]:
    """Hidden states [n,C] and block of every run, each from its start (0 by default) on, after a segment of `before`.

    Without `before` every run stands alone. The segments get no gradient.
    """
    sizes = [len(run) for run in runs]
    device = network.device
    ids = torch.tensor([token for run in runs for token in run], device=device)
    first = starts or [0] * len(runs)
    places = torch.cat([torch.arange(at, at + size, device=device) for at, size in zip(first, sizes, strict=True)])
    frames = PositionFrames(network.angles(places[None, None, None]), None, None, _attention(network, sizes, device))
    hidden, block = network.run(network.embed(ids[None]), frames, before, (), adapted=True)
    assert block is not None
    keys, values = block.keys.split(sizes, 3), block.values.split(sizes, 3)
    return list(hidden[0].split(sizes)), [KeyValueBlock(*each) for each in zip(keys, values, strict=True)]


def _attention(network: TorchDecoder, sizes: Sequence[int], device: torch.device) -> Attention:
    """Attention [1,H,G*R,D] of each run to its segment, if there are any, and to its own rows that are not later."""
    groups = network.groups
    later = [torch.ones(n, n, dtype=torch.bool, device=device).triu(1).repeat(groups, 1) for n in sizes]
    ends = [0]
    for size in sizes:
        ends.append(ends[-1] + size)

    def attend(near: list[Segment], away: list[Segment]) -> Tensor:
        *segments, (queries, keys, values, _) = near
        heads, width = keys.shape[1], keys.shape[3]
        wide = queries.view(heads, groups, -1, width)
        found = []
        for number, (first, last) in enumerate(pairwise(ends)):
            q = wide[:, :, first:last].reshape(heads, -1, width)
            own = keys[0, :, first:last], values[0, :, first:last]
            attended: Tensor
            if segments:
                _, far_k, far_v, _ = segments[number]
                attended = RunAttention.apply(q, far_k[0], far_v[0], *own, later[number])
            else:
                attended = causal_attention(*(each[None] for each in (q, *own)))
            found.append(attended.view(heads, groups, last - first, width))
        return torch.cat(found, 2).view(1, heads, -1, width)

    return attend


class RunAttention(torch.autograd.Function):
    """Attention [H,G*n,D] of q [H,G*n,D] to far keys and values [H,T,D] and own ones [H,n,D].

    `later` bool [G*n,n] hides own keys. The far ones get no gradient, which the stock attention would compute.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, far_k: Tensor, far_v: Tensor, k: Tensor, v: Tensor, later: Tensor) -> Tensor:
        far = far_k.shape[1]
        scores = torch.empty(*q.shape[:2], far + k.shape[1], device=q.device)
        scores[..., :far] = q @ far_k.transpose(1, 2)
        scores[..., far:] = (q @ k.transpose(1, 2)).masked_fill_(later, float("-inf"))
        shares = scores.mul_(q.shape[-1] ** -0.5).softmax(-1).to(q.dtype)
        out = shares[..., :far] @ far_v + shares[..., far:] @ v
        ctx.save_for_backward(q, far_k, far_v, k, v, shares, out)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, Tensor, Tensor, None]:
        (grad,) = grads
        q, far_k, far_v, k, v, shares, out = ctx.saved_tensors
        far, scale = far_k.shape[1], q.shape[-1] ** -0.5
        mean = (grad * out).sum(-1, keepdim=True)
        of_far = (grad @ far_v.transpose(1, 2)).sub_(mean).mul_(shares[..., :far])
        of_own = (grad @ v.transpose(1, 2)).sub_(mean).mul_(shares[..., far:])
        of_q = (of_far @ far_k).add_(of_own @ k).mul_(scale)
        of_k = (of_own.transpose(1, 2) @ q).mul_(scale)
        return of_q, None, None, of_k, shares[..., far:].transpose(1, 2) @ grad, None
