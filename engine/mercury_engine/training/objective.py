"""Masked-token loss on canvases: what is hidden, what is falsified, what counts.

Dimensions: K canvases, S slots, T context tokens.
"""

import math
import random
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from mercury_engine.model import Block, ModelConfig, Network, Packing, Side, join
from mercury_engine.reading import pad_sides, read_alone, read_start, side_by_side
from mercury_engine.training.gaps import Gap


@dataclass(frozen=True, slots=True)
class Noise:
    """How canvases are corrupted."""

    full: float = 0.9
    """Share of gaps with a canvas masked everywhere: one to four steps live there."""
    wrong: float = 0.12
    """Share of visible tokens replaced by random ones, with loss on them."""
    exact: float = 0.25
    """Share of gaps whose canvas is as long as the target, with no tail of end markers."""
    fade: float = 0.95
    """Weight of a hidden slot for every hidden one between it and the last token known to its left."""
    keep: float = 0.15
    """Weight of visible tokens that are right: they are to be left as they are."""
    own: float = 0.0
    """Share of hidden slots that show the model's own one-step guess instead of a mask."""
    sharpen: float = 0.0
    """Weight of the entropy of slots that are already predicted right. arXiv 2510.08632."""


@dataclass(slots=True)
class Canvas:
    """One corrupted canvas: ids to feed, ids to predict, loss weight of every slot; its gap's number."""

    gap: int
    inputs: list[int]
    targets: list[int]
    weights: list[float]
    masked: list[bool]


def corrupt(network: Network, gaps: list[Gap], slots: int, rng: random.Random, noise: Noise) -> list[Canvas]:
    """For every gap canvases of one length: fully masked, settled from the left as fills are, and at random."""
    config = network.config
    canvases = []
    for number, gap in enumerate(gaps):
        tail = 0 if rng.random() < noise.exact else max(1, slots - len(gap.target))
        length = min(slots, len(gap.target) + tail)
        targets = (gap.target + [config.end_id] * tail)[:length]
        value = [1.0 if t != config.end_id else 1.0 / tail for t in targets]
        rate = min(0.95, max(0.05, rng.gauss(0.5, 0.2)))
        settled = rng.randint(1, max(1, min(length, len(gap.target)) - 1))
        masks = [[slot >= settled for slot in range(length)], [rng.random() < rate for _ in targets]]
        if rng.random() < noise.full:
            masks.insert(0, [True] * length)
        for hidden in masks:
            canvases.append(_canvas(number, targets, value, hidden, config, rng, noise))
    return canvases


def _canvas(
    number: int,
    targets: list[int],
    value: list[float],
    hidden: list[bool],
    config: ModelConfig,
    rng: random.Random,
    noise: Noise,
) -> Canvas:
    wrong = [not h and rng.random() < noise.wrong for h in hidden]
    inputs = [
        config.mask_id if h else rng.randrange(17, config.vocab_size) if w else t
        for h, w, t in zip(hidden, wrong, targets, strict=True)
    ]
    weights, run = [], 0
    for h, w, v in zip(hidden, wrong, value, strict=True):
        weights.append(v * noise.fade**run if h else v if w else v * noise.keep)
        run = run + 1 if h else 0
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
    stacks = _read_near(network, gaps, far)
    prefixes = [join([side, stack]) if stack else side for side, stack in zip(far, stacks, strict=True)]
    suffixes = [side_by_side(network, [blocks[b] for b in g.suffix if b] or [start], leading=False) for g in gaps]
    return pad_sides(prefixes), pad_sides(suffixes), [len(g.near) - 1 for g in gaps]


def _read_near(network: Network, gaps: list[Gap], far: list[Side]) -> list[Side | None]:
    """The near stack of every gap without its last token; gaps of one chunk share what they have in common."""
    stacks = [tuple(g.near[:-1]) for g in gaps]
    leaders: list[int] = []
    leader_of = {}
    for i in sorted(range(len(gaps)), key=lambda i: -len(stacks[i])):
        same = (j for j in leaders if gaps[j].far == gaps[i].far and stacks[j][: len(stacks[i])] == stacks[i])
        leader_of[i] = next(same, i)
        if leader_of[i] == i:
            leaders.append(i)
    longest = max(len(stacks[i]) for i in leaders)
    if not longest:
        return [None] * len(gaps)
    ids_BT = torch.tensor([[*stacks[i], *[0] * (longest - len(stacks[i]))] for i in leaders], device=far[0].keys.device)
    _, near = network.read(ids_BT, [pad_sides([far[i] for i in leaders])])
    row_of = {i: row for row, i in enumerate(leaders)}
    return [_near(network, near, row_of[leader_of[i]], len(stack)) if stack else None for i, stack in enumerate(stacks)]


def _near(network: Network, near: Block, row: int, tokens: int) -> Side:
    return network.rotated(Block(near.keys[:, row : row + 1, :, :tokens], near.values[:, row : row + 1, :, :tokens]), 0)


@dataclass(frozen=True, slots=True)
class Losses:
    """Weighted mean over slots for the gradient; nats of fully masked slots by their number, for the report."""

    total: Tensor
    first: float
    by_slot: list[float]


def canvas_loss(network: Network, gaps: list[Gap], canvases: list[Canvas], start_id: int, noise: Noise) -> Losses:
    """Cross-entropy of hidden and falsified slots, the canvases of a gap packed side by side."""
    context = read_context(network, gaps, start_id)
    if noise.own:
        with torch.no_grad():
            guesses = network.writer_logits(_write(network, gaps, canvases, context)).argmax(-1).tolist()
        canvases = _with_guesses(canvases, guesses, noise.own, network.config.mask_id)
    hidden = _write(network, gaps, canvases, context)
    weights = torch.tensor([w for c in canvases for w in c.weights], device=hidden.device)
    targets = torch.tensor([t for c in canvases for t in c.targets], device=hidden.device)
    chosen = weights > 0
    logits = network.writer_logits(hidden[chosen])
    nats = F.cross_entropy(logits, targets[chosen], reduction="none")
    total = (nats * weights[chosen]).sum() / weights.sum()
    if noise.sharpen:
        right = logits.argmax(-1) == targets[chosen]
        logp = logits[right][:, : network.config.vocab_size].log_softmax(-1)
        total = total - noise.sharpen * (logp.exp() * logp).sum() / len(targets[chosen])
    return Losses(total, *_report(canvases, chosen, nats.detach(), network.config.end_id))


def _write(network: Network, gaps: list[Gap], canvases: list[Canvas], context: tuple[Side, Side, list[int]]) -> Tensor:
    """Hidden states that predict the slots of all canvases, one row a slot, in the order of the canvases."""
    prefix, suffix, ends = context
    device = network.embedding.device
    rows: list[list[tuple[int, int, int, int]]] = [[] for _ in gaps]  # id, canvas, place, rows of the canvas
    predicting = []
    for number, canvas in enumerate(canvases):
        row = rows[canvas.gap]
        ids = [gaps[canvas.gap].near[-1], *canvas.inputs]
        predicting += [(canvas.gap, len(row) + slot) for slot in range(len(canvas.inputs))]
        row += [(token, number, place, len(ids)) for place, token in enumerate(ids)]
    longest = max(map(len, rows))
    for row in rows:
        row += [(0, -1, 0, 1)] * (longest - len(row))
    ids_BR, canvas_BR, place_BR, length_BR = torch.tensor(rows, device=device).unbind(-1)
    packing = Packing(canvas_BR, place_BR, length_BR)
    hidden = network.write(ids_BR, [prefix], [suffix], torch.tensor(ends, device=device), packing)
    gap, row_number = torch.tensor(predicting, device=device).unbind(-1)
    return hidden[gap, row_number]


def _with_guesses(canvases: list[Canvas], guesses: list[int], share: float, mask_id: int) -> list[Canvas]:
    """The canvases with some masks replaced by guesses, chosen by a fixed pattern so that no slot is favoured."""
    out, at = [], 0
    for number, canvas in enumerate(canvases):
        period = max(2, round(1 / share))
        inputs = [
            guesses[at + slot] if token == mask_id and (slot + number) % period == 0 else token
            for slot, token in enumerate(canvas.inputs)
        ]
        at += len(inputs)
        out.append(Canvas(canvas.gap, inputs, canvas.targets, canvas.weights, canvas.masked))
    return out


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
