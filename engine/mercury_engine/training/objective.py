"""Masked-token loss on canvases: what is hidden, what is falsified, what counts.

Dimensions: K canvases, S slots, T context tokens.
"""

import math
import random
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from mercury_engine.model import Block, Network, Side, join
from mercury_engine.reading import pad_sides, read_alone, read_start, side_by_side
from mercury_engine.training.gaps import Gap


@dataclass(frozen=True, slots=True)
class Noise:
    """How canvases are corrupted."""

    full: float = 0.3
    """Share of canvases masked everywhere: one to four steps live there."""
    wrong: float = 0.12
    """Share of visible tokens replaced by random ones, with loss on them."""
    exact: float = 0.25
    """Share of gaps whose canvas is as long as the target, with no tail of end markers."""


@dataclass(slots=True)
class Canvas:
    """One corrupted canvas: ids to feed, ids to predict, loss weight of every slot; its gap's number."""

    gap: int
    inputs: list[int]
    targets: list[int]
    weights: list[float]
    masked: list[bool]


def corrupt(network: Network, gaps: list[Gap], slots: int, rng: random.Random, noise: Noise) -> list[Canvas]:
    """Three canvases of one length for every gap: a fully masked one and a complementary pair."""
    config = network.config
    canvases = []
    for number, gap in enumerate(gaps):
        tail = 0 if rng.random() < noise.exact else max(1, slots - len(gap.target))
        length = min(slots, len(gap.target) + tail)
        targets = (gap.target + [config.end_id] * tail)[:length]
        value = [1.0 if t != config.end_id else 1.0 / tail for t in targets]
        rate = min(0.95, max(0.05, rng.gauss(0.5, 0.2)))
        half = [rng.random() < rate for _ in targets]
        masks = [[True] * length, half, [not hidden for hidden in half]]
        if rng.random() > 3 * noise.full:
            masks = masks[1:]
        for hidden in masks:
            canvases.append(_canvas(number, targets, value, hidden, config.mask_id, rng, noise, config.vocab_size))
    return canvases


def _canvas(
    number: int,
    targets: list[int],
    value: list[float],
    hidden: list[bool],
    mask_id: int,
    rng: random.Random,
    noise: Noise,
    vocab_size: int,
) -> Canvas:
    wrong = [not h and rng.random() < noise.wrong for h in hidden]
    inputs = [
        mask_id if h else rng.randrange(17, vocab_size) if w else t
        for h, w, t in zip(hidden, wrong, targets, strict=True)
    ]
    weights = [v if h or w else 0.0 for h, w, v in zip(hidden, wrong, value, strict=True)]
    return Canvas(number, inputs, list(targets), weights, list(hidden))


@torch.no_grad()
def read_context(network: Network, gaps: list[Gap], start_id: int) -> tuple[Side, Side, list[int]]:
    """Prefix and suffix sides of all gaps, and the position of each gap's last prefix token."""
    unique = sorted({b for gap in gaps for b in (*gap.far, *gap.suffix) if b}, key=lambda b: (len(b), b))
    blocks: dict[tuple[int, ...], Block] = {}
    for first in range(0, len(unique), 16):
        batch = unique[first : first + 16]
        blocks.update(zip(batch, read_alone(network, batch, start_id), strict=True))
    start = read_start(network, start_id)
    far = [side_by_side(network, [start, *(blocks[b] for b in g.far if b)], leading=True) for g in gaps]
    longest = max(len(g.near) for g in gaps)
    ids_BT = torch.tensor([g.near + [start_id] * (longest - len(g.near)) for g in gaps], device=start.keys.device)
    prefixes = far
    if longest > 1:
        _, near = network.read(ids_BT[:, :-1], [pad_sides(far)])
        prefixes = [
            join([side, _near(network, near, i, len(g.near) - 1)])
            for i, (side, g) in enumerate(zip(far, gaps, strict=True))
        ]
    suffixes = [side_by_side(network, [blocks[b] for b in g.suffix if b] or [start], leading=False) for g in gaps]
    return pad_sides(prefixes), pad_sides(suffixes), [len(g.near) - 1 for g in gaps]


def _near(network: Network, near: Block, row: int, tokens: int) -> Side:
    return network.rotated(Block(near.keys[:, row : row + 1, :, :tokens], near.values[:, row : row + 1, :, :tokens]), 0)


@dataclass(frozen=True, slots=True)
class Losses:
    """Weighted mean over slots for the gradient; nats of fully masked slots by their number, for the report."""

    total: Tensor
    first: float
    by_slot: list[float]


def canvas_loss(network: Network, gaps: list[Gap], canvases: list[Canvas], start_id: int) -> Losses:
    """Cross-entropy of hidden and falsified slots; canvases are padded with slots that nothing attends to."""
    prefix, suffix, ends = read_context(network, gaps, start_id)
    device = network.embedding.device
    hidden: list[Tensor] = []
    order: list[Canvas] = []
    for length in sorted({len(c.inputs) for c in canvases}):
        batch = [c for c in canvases if len(c.inputs) == length]
        rows = torch.tensor([c.gap for c in batch], device=device)
        ids_BR = torch.tensor([[gaps[c.gap].near[-1], *c.inputs] for c in batch], device=device)
        ends_B = torch.tensor([ends[c.gap] for c in batch], device=device)
        hidden.append(network.write(ids_BR, [_rows(prefix, rows)], [_rows(suffix, rows)], ends_B)[:, :-1].flatten(0, 1))
        order += batch
    weights = torch.tensor([w for c in order for w in c.weights], device=device)
    targets = torch.tensor([t for c in order for t in c.targets], device=device)
    chosen = weights > 0
    nats = F.cross_entropy(network.writer_logits(torch.cat(hidden)[chosen]), targets[chosen], reduction="none")
    total = (nats * weights[chosen]).sum() / weights.sum()
    return Losses(total, *_report(order, chosen, nats.detach(), network.config.end_id))


def _rows(side: Side, rows: Tensor) -> Side:
    bias = None if side.bias is None else side.bias[rows]
    return Side(side.keys[:, rows], side.values[:, rows], bias)


def _report(order: list[Canvas], chosen: Tensor, nats: Tensor, end_id: int) -> tuple[float, list[float]]:
    slots: dict[int, list[float]] = {0: [], 1: [], 2: [], 3: []}
    value = torch.full(chosen.shape, math.nan)
    value[chosen.cpu()] = nats.float().cpu()
    at = 0
    for canvas in order:
        if all(canvas.masked):
            for slot in slots:
                if slot < len(canvas.targets) and canvas.targets[slot] != end_id:
                    slots[slot].append(float(value[at + slot]))
        at += len(canvas.targets)
    means = [sum(v) / len(v) if v else math.nan for v in slots.values()]
    return means[0], means
