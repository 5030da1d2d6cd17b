"""The decision at the end of a step, on the device: commits slots and makes everything after an end marker end.

A step with drafts (tokens with a probability of 0) only judges them: a draft that is the best token of its row stays,
the others are masked. The last step takes the best token everywhere. Else masked slots are committed by rising entropy
while sum - max <= bound, at least one. Slot i is committed exactly if the entropies before it in rising order (ties by
position) sum to at most the bound, which needs no sorting: sum_j e_j [(e_j, j) < (e_i, i)] <= bound. The sum is taken
in float64 and rounded once. arXiv 2505.24857.

Dimensions: B requests, R canvas columns (the last prefix token, then the slots).
"""

import triton
import triton.language as tl

from mercury_kernels import reference
from mercury_kernels.launch import guarded, options, power
from mercury_kernels.operands import CanvasSlots, TokenChoice


@triton.jit(do_not_specialize=["R", "mask_id", "end_id"])
def _commit(
    first: tl.tensor,
    token: tl.tensor,
    top: tl.tensor,
    total: tl.tensor,
    entropy: tl.tensor,
    rows: tl.tensor,
    bounds: tl.tensor,
    most: tl.tensor,
    probability: tl.tensor,
    left: tl.tensor,
    steps: tl.tensor,
    R: tl.tensor,
    mask_id: tl.tensor,
    end_id: tl.tensor,
    BLOCK: tl.constexpr,
    PART: tl.constexpr,
) -> None:
    batch = tl.program_id(0)
    slot = tl.arange(0, BLOCK)
    inside = slot + 1 < tl.load(rows + batch)
    at = batch * R + slot
    ids = tl.load(first + at + 1, inside, 0)
    masked = inside & (ids == mask_id)
    draft = inside & (ids != mask_id) & (tl.load(probability + at + 1, inside, 1.0) == 0.0)
    judging = tl.max(draft.to(tl.int32), 0)
    risk = tl.where(masked, tl.load(entropy + at, inside, 0.0), float("inf"))
    before, rank = tl.zeros((BLOCK,), tl.float64), tl.zeros((BLOCK,), tl.int32)
    for start in range(0, BLOCK, PART):  # a whole square of slots would not fit into registers
        other = start + tl.arange(0, PART)
        there = other + 1 < tl.load(rows + batch)
        open_ = there & (tl.load(first + batch * R + other + 1, there, 0) == mask_id)
        rival = tl.where(open_, tl.load(entropy + batch * R + other, open_, 0.0), float("inf"))
        sooner = (rival[None, :] < risk[:, None]) | (
            (rival[None, :] == risk[:, None]) & (other[None, :] < slot[:, None])
        )
        sooner = sooner & open_[None, :]
        before += tl.sum(tl.where(sooner, rival[None, :].to(tl.float64), 0.0), 1)
        rank += tl.sum(sooner.to(tl.int32), 1)
    leading = rank == 0
    done = tl.load(steps + batch) + tl.max((masked | draft).to(tl.int32), 0)
    is_last_step = done >= tl.load(most + batch)
    best = tl.load(token + at, inside, 0)
    sure_enough = masked & (judging == 0) & (leading | (before.to(tl.float32) <= tl.load(bounds + batch)))
    chosen = sure_enough | (draft & (best == ids)) | ((masked | draft) & is_last_step)
    ids = tl.where(chosen, best, tl.where(draft, mask_id, ids))
    sure = tl.exp(tl.load(top + at, inside, 0.0) - tl.load(total + at, inside, 0.0))
    end = tl.min(tl.where(inside & (ids == end_id), slot, BLOCK), 0)
    hidden = inside & (slot > end)
    tl.store(probability + at + 1, tl.where(hidden, 1.0, sure), chosen | hidden)
    ids = tl.where(hidden, end_id, ids)
    tl.store(first + at + 1, ids, inside)
    tl.store(left + batch, tl.sum((inside & (ids == mask_id)).to(tl.int32), 0))
    tl.store(steps + batch, done)


@guarded(reference.commit)
def commit(slots: CanvasSlots, choice: TokenChoice, mask_id: int, end_id: int) -> None:
    """One step's decision for every canvas, in place; row r of the choice [B*R] predicts column r + 1."""
    batch, rows = slots.ids.shape
    _commit[(batch,)](
        slots.ids, choice.token, choice.top, choice.total, choice.entropy, slots.rows, slots.bound, slots.most,
        slots.probability, slots.open, slots.steps, rows, mask_id, end_id, power(rows), 16,
        **options(slots.ids.device, 4, 1),
    )  # fmt: skip
