"""Measure losses on fixed gaps of held-out files, by mask rate and by slot, and the reader's losses for comparison.

Dimensions: B gaps, T tokens.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mercury_engine.errors import ModelCorrupt
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.network import ModelConfig
from mercury_engine.prompt.tokenizer import Tokenizer
from torch.nn import functional as F

from mercury_lab.training.data.corpus import read_files
from mercury_lab.training.examples.gaps import GapSampler, TrainingGap
from mercury_lab.training.examples.mixture import GapWindow, Mixture
from mercury_lab.training.optimisation.loss import Layout, mean_or_nan, slot_losses
from mercury_lab.training.optimisation.objective import Noise, TrainingCanvas, masked_canvas, slot_values
from mercury_lab.training.optimisation.prefill import pad_sides, read_alone, read_start, side_by_side
from mercury_lab.training.optimisation.steps import WriterSteps

MASK_RATES = (0.25, 0.5, 0.75, 1.0)

VALIDATION_SLOTS = 16
"""Slots of every canvas; longer targets are truncated."""

GAPS_PER_FILE = 4

REPORTED_SLOTS = 8
"""First slots whose nats are reported one by one."""

GAPS_PER_PASS = 16
"""Gaps that the reader measures together."""

Nats = defaultdict[float, list[float]]
"""Nats by mask rate or by slot."""


@dataclass(frozen=True, slots=True)
class Validation:
    """Fixed gaps, each with a canvas of every mask rate."""

    windows: list[GapWindow]
    canvases: list[list[TrainingCanvas]]

    @classmethod
    def of(cls, corpus: Path, tokenizer: Tokenizer, config: ModelConfig, gaps: int) -> "Validation":
        """About `gaps` gaps from the files of a corpus folder; raises ModelCorrupt if there are none."""
        rng = random.Random("validation")
        mixture, sampler = Mixture(read_files(corpus)), GapSampler(tokenizer, rng)
        windows: list[GapWindow] = []
        for _ in range(2 * gaps):  # some files are too short
            if sum(len(window.gaps) for window in windows) < gaps:
                file = mixture.sample(rng)
                found = sampler.gaps(file, min(GAPS_PER_FILE, gaps), mixture.others(file, rng))
                windows += [GapWindow(found, VALIDATION_SLOTS)] if found else []
        if not windows:
            raise ModelCorrupt(f"no file of {corpus} is long enough to validate on; name another corpus folder")
        of_windows = [[c for n, gap in enumerate(w.gaps) for c in _canvases(n, gap, config, rng)] for w in windows]
        return cls(windows, of_windows)

    @torch.no_grad()
    def writer(self, network: TorchDecoder, steps: WriterSteps) -> dict[str, Any]:
        """Mean nats by mask rate, and by slot at rate 1."""
        by_rate, by_slot = Nats(list), Nats(list)
        size = max(1, steps.files * steps.sampler.gaps // (4 * GAPS_PER_FILE))  # a quarter of a step always fits
        for first in range(0, len(self.windows), size):
            part = slice(first, first + size)
            for layout in steps.layouts(self.windows[part], self.canvases[part]):
                _measure(network, layout, by_rate, by_slot)
        return {
            "rates": _means(by_rate, MASK_RATES),
            "by_slot": _means_by_slot(by_slot),
        }

    @torch.no_grad()
    def reader(self, network: TorchDecoder, start_id: int) -> dict[str, Any]:
        """Mean nats of the frozen reader by slot, given the right tokens before each; it sees no suffix."""
        gaps = [gap for window in self.windows for gap in window.gaps]
        by_slot = Nats(list)
        with torch.compiler.set_stance("force_eager"):  # once, in many shapes
            for first in range(0, len(gaps), GAPS_PER_PASS):
                _read_on(network, gaps[first : first + GAPS_PER_PASS], start_id, by_slot)
        return {"by_slot": _means_by_slot(by_slot)}


def _canvases(number: int, gap: TrainingGap, config: ModelConfig, rng: random.Random) -> list[TrainingCanvas]:
    tail = max(1, VALIDATION_SLOTS - len(gap.target))
    targets = (gap.target + [config.end_id] * tail)[:VALIDATION_SLOTS]
    plain = Noise(fade=1.0, keep=0.0)
    found = []
    for rate in MASK_RATES:
        masked = [rng.random() < rate for _ in targets]
        masked[rng.randrange(VALIDATION_SLOTS)] = True
        found.append(masked_canvas(number, targets, slot_values(targets, tail, config), masked, config, plain))
    return found


def _measure(network: TorchDecoder, layout: Layout, by_rate: Nats, by_slot: Nats) -> None:
    rows, device = layout.rows, network.device
    hidden = layout.write(network, layout.read(network), torch.from_numpy(rows.ids).to(device))
    at = np.flatnonzero(rows.weight > 0)
    targets, weights = (torch.from_numpy(part[at]).to(device) for part in (rows.target, rows.weight))
    nats = slot_losses(network, hidden[torch.from_numpy(at).to(device)], targets, weights)[2].tolist()
    for row, value in zip(at.tolist(), nats, strict=True):
        if rows.target[row] != network.config.end_id:
            rate = MASK_RATES[rows.canvas[row] % len(MASK_RATES)]
            by_rate[rate].append(value)
            if rate == 1.0:
                by_slot[int(rows.place[row])].append(value)


def _read_on(network: TorchDecoder, gaps: Sequence[TrainingGap], start_id: int, by_slot: Nats) -> None:
    device = network.device
    start = read_start(network, start_id)
    far = []
    for gap in gaps:
        blocks = [b for b in gap.far if b]
        read = read_alone(network, blocks, start_id) if blocks else []
        far.append(side_by_side(network, [start, *read], leading=True))
    texts = [[*gap.near, *gap.target[:REPORTED_SLOTS]] for gap in gaps]
    longest = max(map(len, texts))
    ids_BT = torch.tensor([[*text, *[0] * (longest - len(text))] for text in texts], device=device)
    hidden, _ = network.read(ids_BT, [pad_sides(far)])
    for number, gap in enumerate(gaps):
        target = torch.tensor(gap.target[:REPORTED_SLOTS], device=device)
        logits = network.logits(hidden[number, len(gap.near) - 1 :][: len(target)])
        for slot, value in enumerate(F.cross_entropy(logits, target, reduction="none").tolist()):
            by_slot[slot].append(value)


def _means(found: Nats, keys: Sequence[float]) -> dict[str, float]:
    return {str(key): mean_or_nan(found[key]) for key in keys}


def _means_by_slot(by_slot: Nats) -> list[float]:
    return [mean_or_nan(by_slot[slot]) for slot in range(REPORTED_SLOTS)]
