"""A rule of masked diffusion: which slots a denoise step reveals, masks again, inserts and deletes.

Both kernels are small. What counts is that a step has two launches for its rule instead of a hundred.

Dimensions: R rows, W answers, K candidates.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from mercury_kernels.launch import options, power
from mercury_kernels.operands import UNSEEN, Slots

PADDING = tl.constexpr(UNSEEN)


@triton.jit
def _draw(tokens, logits, token, sure, ids, answer, rule, uniform, mask, R, K: tl.constexpr, BR: tl.constexpr):
    again, by_entropy = tl.load(rule + 4), tl.load(rule + 5)
    temperature, top_p, top_k = tl.load(rule + 9), tl.load(rule + 10), tl.load(rule + 11)
    row, k, r = tl.program_id(0), tl.arange(0, K), tl.arange(0, BR)
    at = tl.load(answer + r, r < R, -1)
    is_mask = (at >= 0) & (tl.load(ids + r, r < R, -1) == mask)
    first = tl.where(again == 0, tl.min(tl.where(is_mask, at, BR), 0), 0)  # slots before it are accepted
    number = tl.load(uniform + tl.maximum(row - first, 0))
    chance = tl.load(logits + row * K + k).to(tl.float64) / temperature
    chance = tl.exp(chance - tl.max(chance, 0))
    chance /= tl.sum(chance, 0)
    chance = tl.where((tl.cumsum(chance, 0) - chance <= top_p) & (k < top_k), chance, 0.0)
    chance /= tl.sum(chance, 0)
    named = tl.load(tokens + row * K + k)
    up_to = tl.sum(tl.where(named[None, :] <= named[:, None], chance[None, :], 0.0), 1)
    drawn = tl.min(tl.where((up_to > number) & (chance > 0), named, 1 << 30), 0)
    entropy = -tl.sum(chance * tl.log(tl.maximum(chance, 1e-10)), 0)
    tl.store(token + row, drawn)
    tl.store(sure + row, tl.where(by_entropy > 0, -entropy, tl.sum(tl.where(named == drawn, chance, 0.0), 0)))


@triton.jit
def _reveal(token, told, ids, order, answer, seen, rule, mask, R, W, IS_DRAWN: tl.constexpr, BR: tl.constexpr):
    count, share, least, bound = tl.load(rule), tl.load(rule + 1), tl.load(rule + 2), tl.load(rule + 3)
    again, by_entropy, end = tl.load(rule + 4), tl.load(rule + 5), tl.load(rule + 6)
    r = tl.arange(0, BR)
    inside = r < R
    at = tl.minimum(tl.load(answer + r, inside, -1), W - 1)
    old, place = tl.load(ids + r, inside, -1), tl.load(order + r, inside, PADDING)
    is_slot = at >= 0
    is_mask = is_slot & (old == mask)
    if IS_DRAWN:
        sure = tl.load(told + at, is_slot, 0.0)
    else:
        chance = tl.exp(tl.load(told + at * 4, is_slot, 0.0) - tl.load(told + at * 4 + 1, is_slot, 0.0))
        sure = tl.where(by_entropy > 0, -tl.load(told + at * 4 + 3, is_slot, 0.0), chance)
    tie = (sure[None, :] == sure[:, None]) & (r[None, :] < r[:, None])
    before = ((sure[None, :] > sure[:, None]) | tie) & is_mask[None, :]
    few = count + tl.floor(tl.sum(is_mask.to(tl.int32), 0) * share)
    spent = tl.sum(tl.where(before, -sure[None, :], 0.0), 1)
    chosen = (tl.sum(before.to(tl.int32), 1) < few) | (sure >= least.to(sure.dtype)) | (spent <= bound)
    new = tl.where(is_mask & chosen, tl.load(token + at, is_slot, 0), old)
    new = tl.where(is_slot & (tl.cumsum((is_slot & (new == end)).to(tl.int32), 0) > 0), end.to(tl.int64), new)
    below = ((sure[None, :] < sure[:, None]) | tie) & is_slot[None, :]
    new = tl.where(is_slot & (tl.sum(below.to(tl.int32), 1) < again), mask, new)
    deleted = is_mask & (tl.cumsum((is_slot & (new == tl.load(rule + 7))).to(tl.int32), 0) > 0)
    expanded = is_slot & (deleted == 0) & (new == tl.load(rule + 8))
    new = tl.where(expanded, mask, new)
    to = tl.cumsum(1 - deleted.to(tl.int32) + expanded.to(tl.int32), 0) - 1
    first = tl.sum(tl.where(at == 0, r, 0), 0)
    tl.debug_barrier()  # all rows are read
    rows = tl.sum((inside & (deleted == 0)).to(tl.int32) + expanded.to(tl.int32), 0)
    tl.store(ids + r, tl.zeros((BR,), tl.int64), inside & (r >= rows))
    tl.store(order + r, tl.full((BR,), PADDING, tl.int64), inside & (r >= rows))
    tl.store(answer + r, tl.full((BR,), -1, tl.int64), inside & (r >= rows))
    tl.store(seen + r, tl.full((BR,), -1, tl.int32), inside & (r >= rows))
    for left in tl.static_range(2):  # an expanded slot also stands left of its place
        here = inside & (expanded if left else deleted == 0) & (to - left < R)
        tl.store(ids + to - left, new, here)
        tl.store(order + to - left, place, here)
        tl.store(answer + to - left, tl.where(is_slot, to - left - first, -1), here)
        tl.store(seen + to - left, tl.where(place < PADDING, new, -1).to(tl.int32), here)


def draw(tokens: Tensor, logits: Tensor, slots: Slots) -> tuple[Tensor, Tensor]:
    """See `reference.draw`."""
    (rows, candidates), device = tokens.shape, tokens.device
    token = torch.empty(rows, dtype=torch.int32, device=device)
    sure = torch.empty(rows, dtype=torch.double, device=device)
    _draw[(rows,)](
        tokens, logits, token, sure, slots.ids, slots.answer, slots.rule, slots.uniform, slots.mask, len(slots.ids),
        candidates, power(len(slots.ids)), **options(device, 4, 1),
    )  # fmt: skip
    return token, sure


def reveal(token: Tensor, told: Tensor, slots: Slots) -> Tensor:
    """See `reference.reveal`."""
    rows, device = len(slots.ids), token.device
    seen = torch.empty(rows, dtype=torch.int32, device=device)
    _reveal[(1,)](
        token, told, slots.ids, slots.order, slots.answer, seen, slots.rule, slots.mask, rows, len(token),
        told.dim() == 1, power(rows), **options(device, 4, 1),
    )  # fmt: skip
    return seen
