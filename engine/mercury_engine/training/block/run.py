"""Train a block drafter: `python -m mercury_engine.training block --base DIR --corpus DIR --run DIR`.

The base stays as it is; the run's folder holds the drafter. The log's `block` is the mean number of drafted tokens that
match the reader's own continuation of held-out text behind its next token; `repeat` is that of n-gram lookup, `both`
that of the better one at each place.
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mercury_engine.models import decoder_weights, weights
from mercury_engine.models.decoder import Decoder
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_engine.training.block.drafter import BlockDrafter, BlockShape
from mercury_engine.training.block.loss import block_loss
from mercury_engine.training.block.measure import BlockMeasure
from mercury_engine.training.block.start import BlockStart, fit_maps, frequent_tokens
from mercury_engine.training.data.corpus import SourceFile
from mercury_engine.training.drafting.networks import DraftingNetworks, kernel_reader
from mercury_engine.training.drafting.windows import DraftingSettings, Window, WindowSteps, held_out_windows
from mercury_engine.training.examples.mixture import Mixture
from mercury_engine.training.optimisation.options import parser, plan_of, setup_of
from mercury_engine.training.optimisation.plan import Setup, TrainingPlan
from mercury_engine.training.optimisation.run import (
    Batch,
    LogRow,
    TrainingRun,
    move_for_training,
    train_until_terminated,
)


class BlockRun(TrainingRun):
    """A run that trains a block drafter; `TrainingPlan.files` is the number of windows per step."""

    part = "block drafter"
    steps: WindowSteps
    validation: BlockMeasure | None

    def __init__(
        self,
        base: Path,
        corpus: Path,
        folder: Path,
        plan: TrainingPlan,
        device: torch.device,
        parent: Path | None = None,
        setup: Setup | None = None,
        settings: DraftingSettings | None = None,
        shape: BlockShape | None = None,
        start: BlockStart | None = None,
        kernels: bool = False,
    ) -> None:
        """`kernels`: whether the C kernels read, with the engine's quantised weights."""
        self.settings, self.shape, self.start = (
            settings or DraftingSettings(),
            shape or BlockShape(),
            start or BlockStart(),
        )
        self.kernels, self.has_parent = kernels, parent is not None
        super().__init__(base, corpus, folder, plan, device, parent, setup)

    def _network(self, base: Path, device: torch.device) -> Decoder:
        """The frozen reader, with the drafter as a part of it; the draft vocabulary is set by `_lay`."""
        reader = Decoder(replace(weights.read_config(base), adapter_rank=0))
        decoder_weights.fill_reader(reader, base)
        reader.markers.requires_grad_(False)
        self.block = BlockDrafter(reader, torch.zeros(0, dtype=torch.long), self.shape)
        reader.add_module("block", self.block)
        move_for_training(reader, device)
        start_id = Tokenizer(base).start_id
        self.networks = DraftingNetworks(reader, kernel_reader(base) if self.kernels else reader, start_id)
        return reader

    def _lay(self, files: Iterable[SourceFile]) -> None:
        plan, held_out = self.plan, self.setup.validation
        self.steps = WindowSteps(self.tokenizer, Mixture(files), plan.files, self.settings, plan.seed)
        tokens = frequent_tokens(self._windows(self.start.counted), self.start.vocabulary)
        self.block.vocabulary = tokens.to(self.network.device)
        if self.step == 0 and not self.has_parent:
            fit_maps(self.block, self.network, self.networks, self._windows(self.start.fitted))
            self.mean = {name: p.detach().clone() for name, p in self.trained.items()}
        self.validation = None
        if held_out:
            windows = held_out_windows(self.tokenizer, held_out, DraftingSettings(), self.setup.validation_gaps)
            self.validation = BlockMeasure.of(self.networks, windows, self.shape.slots)

    def also_saved(self) -> dict[str, Any]:
        """The draft vocabulary, for the export."""
        return {"vocabulary": self.block.vocabulary.cpu()}

    def _windows(self, count: int) -> Iterator[Window]:
        """The windows of the first steps."""
        return islice(chain.from_iterable(self.steps[step] for step in range(count)), count)

    def _losses(self, batch: Batch) -> Iterator[tuple[Tensor, Any]]:
        for window in batch:
            reading = self.networks.read(window)
            logits = self.networks.reader.logits(reading.hidden)
            loss, row = block_loss(self.block, self.network, window, reading, logits)
            yield loss / len(batch), row

    def _figures(self, parts: list[Any]) -> LogRow:
        """Means over the windows; a slot that no row drafted is missing."""
        scalars = {name: sum(row[name] for row in parts) / len(parts) for name in ("truth", "distance")}
        agreed = torch.tensor([row["agreed"] for row in parts]).nanmean(0).tolist()
        return scalars | {"agreed": agreed, "rows": sum(row["rows"] for row in parts)}

    def _learned(self, batch: Batch) -> int:
        return sum(len(window.places) for window in batch)

    def _speed(self, batch: Batch, seconds: float) -> LogRow:
        rate = self.plan.rate(self.elapsed, self.step)
        return {"places_per_second": self._learned(batch) / seconds, "rate": rate}

    def _measured(self) -> LogRow:
        assert self.validation is not None
        return self.validation.figures(self.block, self.network, self.networks)


def block_parser() -> argparse.ArgumentParser:
    """The options of every run and of block drafters."""
    made = parser(__doc__, "block")
    made.set_defaults(files=3, learning_rate=6e-4, compile=False, validation_gaps=448)
    made.add_argument("--kernels", action="store_true", help="prefill with the C kernels, three times as fast on a CPU")
    made.add_argument("--places", type=int, default=192, help="blocks per window")
    made.add_argument("--decay-share", type=float, default=0.7, help="share of the plan in which the rate falls")
    made.add_argument("--save-every", type=float, default=3, help="minutes between checkpoints")
    return made


def main(argv: list[str]) -> int:
    options = block_parser().parse_args(argv)
    plan = replace(plan_of(options), decay_share=options.decay_share, averaging=0.99)
    setup = replace(setup_of(options), save_every=60 * options.save_every)
    shape = BlockShape()
    settings = DraftingSettings(slots=1 + shape.slots, places=options.places, tokens=384)
    torch.set_num_threads(options.threads)
    run = BlockRun(
        options.base,
        options.corpus,
        options.run,
        plan,
        torch.device(options.device),
        options.parent,
        setup,
        settings,
        shape,
        kernels=options.kernels,
    )
    train_until_terminated(run, options.leg)
    return 0
