"""The loss of a step's canvases, and its figures for the log.

Dimensions: R rows, P rows that predict a slot, C width, V vocabulary with mask and end.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.network import KeyValueSegment
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from mercury_lab.training.optimisation.objective import Rows
from mercury_lab.training.optimisation.packed import Packed
from mercury_lab.training.optimisation.padded import Padded

Layout = Packed | Padded

MAX_LOGITS = 1 << 26
"""Logits in memory at a time; the backward pass computes them again."""

LOGGED_SLOTS = 4
"""First slots whose nats are logged one by one."""


@dataclass(frozen=True, slots=True)
class LateStage:
    """The additions of the last part of a run."""

    guesses: bool = False
    """Whether some hidden slots show the model's own one-step guess."""
    sharpen: float = 0.0
    """Weight of the entropy of slots that are already predicted correctly. arXiv 2510.08632."""


@dataclass(frozen=True, slots=True)
class LossDivisors:
    """The divisors of a step's sums: weight and number of predicted slots."""

    weight: float
    slots: int

    @classmethod
    def of(cls, layouts: Sequence[Layout]) -> "LossDivisors":
        rows = [layout.rows for layout in layouts]
        return cls(
            sum(float(r.weight.sum(dtype=np.float64)) for r in rows),
            sum(int((r.weight > 0).sum()) for r in rows),
        )


@dataclass(frozen=True, slots=True)
class LayoutNats:
    """Nats of every predicted row of one layout, with the rows' indices."""

    rows: Rows
    predicted: np.ndarray
    nats: Tensor


def layout_loss(
    network: TorchDecoder, layout: Layout, totals: LossDivisors, late_stage: LateStage
) -> tuple[Tensor, LayoutNats]:
    """One layout's part of the step's loss: the weighted mean over slots, and its nats."""
    rows, device = layout.rows, network.device
    context = layout.read(network)
    ids = torch.from_numpy(rows.ids).to(device)
    if late_stage.guesses:
        ids = with_guesses(network, layout, context, ids)
    hidden = layout.write(network, context, ids)
    predicted = np.flatnonzero(rows.weight > 0)
    targets, weights = (torch.from_numpy(part[predicted]).to(device) for part in (rows.target, rows.weight))
    chosen = hidden.index_select(0, torch.from_numpy(predicted).to(device))
    weighted, entropy, nats = slot_losses(network, chosen, targets, weights, sharpen=late_stage.sharpen > 0)
    total = weighted / totals.weight + late_stage.sharpen / totals.slots * entropy
    return total, LayoutNats(rows, predicted, nats)


@torch.no_grad()
def with_guesses(
    network: TorchDecoder, layout: Layout, context: tuple[KeyValueSegment, KeyValueSegment], ids_R: Tensor
) -> Tensor:
    """The rows' ids with the model's one-step predictions in some of the hidden slots."""
    shown = torch.from_numpy(np.flatnonzero(layout.rows.guess)).to(ids_R.device)
    before = layout.write(network, context, ids_R).index_select(0, shown - 1)
    parts = [network.writer_logits(part).argmax(-1) for part in before.split(_rows_at_once(network))]
    return ids_R.index_copy(0, shown, torch.cat(parts)) if parts else ids_R


def slot_losses(
    network: TorchDecoder, hidden: Tensor, targets: Tensor, weights: Tensor, *, sharpen: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """For rows [P,C]: the weighted sum of nats, the entropy of correctly predicted rows, and the detached nats [P].

    Every chunk has the same size; the last one is padded with rows of weight 0.
    """
    at_once, count = _rows_at_once(network), len(hidden)
    if count > at_once:
        fill = -count % at_once
        hidden, targets, weights = F.pad(hidden, (0, 0, 0, fill)), F.pad(targets, (0, fill)), F.pad(weights, (0, fill))
    sums: tuple[list[Tensor], ...] = [], [], []
    for part in zip(hidden.split(at_once), targets.split(at_once), weights.split(at_once), strict=True):
        found = checkpoint(
            _chunk_on(hidden.is_cuda), network, *part, sharpen, use_reentrant=False, preserve_rng_state=False
        )
        for into, value in zip(sums, found, strict=True):
            into.append(value)
    weighted, entropy, nats = sums
    return torch.stack(weighted).sum(), torch.stack(entropy).sum(), torch.cat(nats)[:count]


def _chunk(
    network: TorchDecoder, hidden: Tensor, targets: Tensor, weights: Tensor, sharpen: bool
) -> tuple[Tensor, ...]:
    logits = network.writer_logits(hidden)
    nats = F.cross_entropy(logits, targets, reduction="none")
    entropy = nats.new_zeros(())
    if sharpen:
        right = (logits.argmax(-1) == targets) & (weights > 0)
        logp = logits[:, : network.config.vocab_size].log_softmax(-1)
        entropy = (-(logp.exp() * logp).sum(-1) * right).sum()
    return (nats * weights).sum(), entropy, nats.detach()


@cache
def _chunk_on(on_gpu: bool) -> Callable[..., tuple[Tensor, ...]]:
    return torch.compile(_chunk, dynamic=False) if on_gpu else _chunk


def _rows_at_once(network: TorchDecoder) -> int:
    """The largest power of two of rows whose logits fit in MAX_LOGITS; at least 64."""
    return 1 << max(6, (MAX_LOGITS // network.config.vocab_size).bit_length() - 1)


def mean_nats(layouts: Sequence[LayoutNats], end_id: int) -> dict[str, float | list[float]]:
    """Mean nats of the first slots of fully masked canvases; nan where there are none."""
    by_slot: list[list[float]] = [[] for _ in range(LOGGED_SLOTS)]
    for part in layouts:
        rows, at = part.rows, part.predicted
        nats = part.nats.float().cpu().numpy()
        for slot, values in enumerate(by_slot):
            values += nats[(rows.full[at]) & (rows.place[at] == slot) & (rows.target[at] != end_id)].tolist()
    means = [mean_or_nan(values) for values in by_slot]
    return {"first": means[0], "by_slot": means}


def mean_or_nan(values: Sequence[float]) -> float:
    """The mean; nan for no values."""
    return sum(values) / len(values) if values else math.nan
