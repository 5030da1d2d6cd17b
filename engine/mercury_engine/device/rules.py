"""What the rules of `decoding.diffusion.rules` do, on the device: the host decides, so only its time depends on this.

Dimensions: R rows, W answers about slots, K candidates.
"""

from copy import deepcopy
from dataclasses import astuple, dataclass, fields
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from mercury_engine.device.answers import ROWS
from mercury_engine.device.rows import UNSEEN
from mercury_engine.models.row_answers import CANDIDATES, Limits, Reveal


@dataclass(frozen=True, slots=True)
class DeviceRule:
    """A rule and the limits of a step, scalars; see `Limits` and `Reveal`. Tokens are -1 where there is none."""

    count: Tensor
    share: Tensor
    least: Tensor
    bound: Tensor
    again: Tensor
    by_entropy: Tensor
    end: Tensor
    delete: Tensor
    expand: Tensor
    temperature: Tensor
    top_p: Tensor
    top_k: Tensor


FIELDS = len(fields(DeviceRule))


def numbers_of(reveal: Reveal, limits: Limits, drawn: int) -> tuple[float, ...]:
    """The fields of `DeviceRule`, and numbers from 0 to 1 that tokens are drawn with after so many others."""
    tokens = (-1.0 if each is None else float(each) for each in (reveal.end, reveal.delete, reveal.expand))
    choice = reveal.temperature, reveal.top_p, float(reveal.top_k or CANDIDATES)
    uniform = np.zeros(ROWS[-1]) if reveal.random is None else deepcopy(reveal.random).random(drawn + ROWS[-1])[drawn:]
    return *astuple(limits), float(reveal.by_entropy), *tokens, *choice, *uniform.tolist()


class Slots(NamedTuple):
    """The rows of a step, and which of them are slots."""

    ids_R: Tensor
    answer_R: Tensor
    """int64: the place of the answer about each row; -1 for rows that are no slots."""
    mask: int

    @property
    def is_slot_R(self) -> Tensor:
        return self.answer_R >= 0

    @property
    def is_mask_R(self) -> Tensor:
        return self.is_slot_R & (self.ids_R == self.mask)


Chosen = tuple[Tensor, Tensor]
"""A token int64 [W] for every answer, and how sure it is."""


def likeliest(flat: Tensor, rows: int, rule: DeviceRule) -> Chosen:
    """Of answers as `answers.Head.told` makes them."""
    token_W, figures = flat[:rows].view(torch.int32), flat[rows : 5 * rows].view(rows, 4)
    logit_W, log_sum_W, _, entropy_W = figures.unbind(1)
    return token_W.long(), torch.where(rule.by_entropy > 0, -entropy_W, (logit_W - log_sum_W).exp())


def drawn(flat: Tensor, rows: int, slots: Slots, uniform: Tensor, rule: DeviceRule) -> Chosen:
    """Drawn from the candidates as by `Choice.draw`; the first number is for the first slot that is not accepted.

    Those before it are, unless some are masked again.
    """
    token_WK, logit_WK = flat[5 * rows : (5 + 2 * CANDIDATES) * rows].view(2, rows, -1)
    token_WK = token_WK.view(torch.int32).long()
    power_WK = (logit_WK.double() / rule.temperature).softmax(-1)
    rank, place_W = torch.arange(CANDIDATES, device=flat.device), torch.arange(rows, device=flat.device)
    power_WK = power_WK * ((power_WK.cumsum(-1) - power_WK <= rule.top_p) & (rank < rule.top_k))
    power_WK = power_WK / power_WK.sum(-1, keepdim=True)
    order_WK = token_WK.argsort(-1)
    accepted = slots.answer_R[slots.is_mask_R.int().argmax(keepdim=True)] * (rule.again == 0)
    number_W1 = uniform[(place_W - accepted).clamp(min=0)][:, None]
    below_W1 = (power_WK.gather(-1, order_WK).cumsum(-1) <= number_W1).sum(-1, keepdim=True)
    rank_W1 = order_WK.gather(-1, below_W1.clamp(max=CANDIDATES - 1))
    entropy_W = -(power_WK * power_WK.clamp(min=1e-10).log()).sum(-1)
    sure_W = torch.where(rule.by_entropy > 0, -entropy_W, power_WK.gather(-1, rank_W1)[:, 0])
    return token_WK.gather(-1, rank_W1)[:, 0], sure_W


def revealed(slots: Slots, token_W: Tensor, sure_W: Tensor, rule: DeviceRule) -> Tensor:
    """The rows int64 [R] after a step by `Rule.step` of those rules."""
    is_slot_R, is_mask_R, answer_R = slots.is_slot_R, slots.is_mask_R, slots.answer_R.clamp(min=0)
    sure_R = sure_W[answer_R]
    place_R = torch.arange(len(sure_R), device=sure_R.device)
    is_left_tie = (sure_R == sure_R[:, None]) & (place_R < place_R[:, None])
    before = ((sure_R > sure_R[:, None]) | is_left_tie) & is_mask_R
    spent_R = torch.where(before, -sure_R, 0.0).sum(1)
    few_R = before.sum(1) < rule.count + (is_mask_R.sum() * rule.share).floor()
    chosen_R = is_mask_R & (few_R | (sure_R >= rule.least) | (spent_R <= rule.bound))
    ids_R = torch.where(chosen_R, token_W[answer_R], slots.ids_R)
    ends_R = (is_slot_R & (ids_R == rule.end)).cumsum(0)
    ids_R = torch.where(is_slot_R & (ends_R > 0), rule.end.long(), ids_R)
    less = (sure_R < sure_R[:, None]) | is_left_tie
    return torch.where(is_slot_R & ((less & is_slot_R).sum(1) < rule.again), slots.mask, ids_R)


def edited(slots: Slots, ids_R: Tensor, order_R: Tensor, rule: DeviceRule) -> tuple[Tensor, Tensor, Tensor]:
    """The rows, their order and the places of their answers, with slots inserted and deleted by `ExpandAndDelete.step`.

    `slots`: before the step; `ids_R`: the rows with what it revealed.
    """
    is_slot_R, place_R = slots.is_slot_R, torch.arange(len(ids_R), device=ids_R.device)
    deleted_R = slots.is_mask_R & ((is_slot_R & (ids_R == rule.delete)).cumsum(0) > 0)
    expanded_R = is_slot_R & ~deleted_R & (ids_R == rule.expand)
    ends_R = (1 - deleted_R.long() + expanded_R.long()).cumsum(0)
    from_R = torch.searchsorted(ends_R, place_R, right=True)  # R for what moves in from beyond
    ids_R = F.pad(torch.where(expanded_R, slots.mask, ids_R), (0, 1))[from_R]
    is_slot_R = F.pad(is_slot_R, (0, 1))[from_R]
    first = (slots.answer_R == 0).int().argmax()
    return ids_R, F.pad(order_R, (0, 1), value=UNSEEN)[from_R], torch.where(is_slot_R, place_R - first, -1)
