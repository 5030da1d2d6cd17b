"""Teach the head that ranks places: `python -m mercury_lab.training places --commits DIR --out FILE`.

It reads the edits that `commits` wrote, learns from "training", stops at the best loss on "validation", and writes the
head (safetensors). Figures for "test" come from `benchmarks/places.py`, beside those of the server's rules.
"""

import argparse
import copy
import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from mercury_engine.places.head import PlaceHead, distinct
from safetensors.numpy import save_file

from mercury_lab.training.commits.build import read_split
from mercury_lab.training.data.sources import SourceError
from mercury_lab.training.ranking.cases import Case, all_cases
from mercury_lab.training.ranking.figures import candidate_figures, place_figures
from mercury_lab.training.ranking.network import Batch, HeadNetwork

BATCH_MOMENTS = 128
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 1e-2
PATIENCE_EPOCHS = 4


def fit(
    training: Sequence[Case], validation: Sequence[Case], epochs: int, seed: int
) -> tuple[HeadNetwork, list[float]]:
    """The network with the least loss on validation, and that loss after every epoch, in nats per moment."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    useful = [case for case in training if len(case.candidates)]
    network = HeadNetwork(np.concatenate([case.rows for case in useful]))
    optimizer = torch.optim.AdamW(network.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, epochs=epochs, steps_per_epoch=-(-len(useful) // BATCH_MOMENTS), pct_start=0.1
    )
    held = _batches([case for case in validation if len(case.candidates)])
    best, losses = copy.deepcopy(network), list[float]()
    for _ in range(epochs):
        network.train()
        for batch in _batches(rng.sample(useful, len(useful))):
            optimizer.zero_grad()
            network.loss(batch).backward()
            optimizer.step()
            schedule.step()
        losses.append(_mean_loss(network, held))
        if losses[-1] == min(losses):
            best = copy.deepcopy(network)
        if len(losses) - losses.index(min(losses)) > PATIENCE_EPOCHS:
            break
    return best.eval(), losses


def _batches(chosen: Sequence[Case]) -> list[Batch]:
    return [Batch(chosen[n : n + BATCH_MOMENTS]) for n in range(0, len(chosen), BATCH_MOMENTS)]


@torch.inference_mode()
def _mean_loss(network: HeadNetwork, batches: Sequence[Batch]) -> float:
    network.eval()
    counts = [len(batch.rows_BCF) for batch in batches]
    return sum(float(network.loss(b)) * n for b, n in zip(batches, counts, strict=True)) / sum(counts)


def main(argv: list[str] | None = None) -> int:
    """Train the head, write it, and print its figures on validation."""
    parser = argparse.ArgumentParser(prog="mercury_lab.training places", description=__doc__)
    parser.add_argument("--commits", type=Path, required=True, help="folder that `commits` wrote")
    parser.add_argument("--out", type=Path, required=True, help="file for the head (.safetensors)")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1, help="processes that make the cases")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    splits = {}
    for split in ("training", "validation"):
        edits = list(read_split(options.commits, split))
        if not edits:
            raise SourceError(f"{options.commits} has no edits for {split}; its list of repositories names none")
        splits[split] = all_cases(edits, options.seed, options.workers)
    network, losses = fit(splits["training"], splits["validation"], options.epochs, options.seed)
    head = PlaceHead(network.weights())
    save_file(head.weights, options.out)
    held = splits["validation"]
    ranked = [distinct(case.candidates, head.probabilities(case.rows)[:-1], 3) for case in held]
    figures = {"losses": losses, **candidate_figures(held), **place_figures(held, ranked)}
    print(json.dumps({"training": len(splits["training"]), **figures}, indent=1))
    return 0
