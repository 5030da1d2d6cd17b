"""Teach the writer to draft: `python -m mercury_engine.training draft --base DIR --corpus DIR --run DIR`.

A draft is the writer's prediction of a few masked slots after the last known token, from the text before it alone; the
reader then verifies it. The writer learns both the text and the reader's predictions of it, see `DraftingSettings`.
Training starts from the writer of --base, or from a new one if the base has none. Clock, legs and checkpoints are those
of `train`.

On SIGTERM the run saves a checkpoint and ends; the same command resumes it. To extend a finished run, raise --minutes:
the learning rate then continues from its value at that time in the longer plan.
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mercury_engine.models import weights
from mercury_engine.models.decoder import Decoder
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_engine.training.data.corpus import SourceFile
from mercury_engine.training.drafting.canvases import reader_targets, text_targets, write_drafts
from mercury_engine.training.drafting.loss import drafting_loss
from mercury_engine.training.drafting.measure import DraftMeasure
from mercury_engine.training.drafting.networks import (
    PRECISIONS,
    DraftingNetworks,
    Precision,
    drafting_writer,
    kernel_reader,
)
from mercury_engine.training.drafting.windows import DraftingSettings, Window, WindowSteps, held_out_windows
from mercury_engine.training.examples.mixture import Mixture
from mercury_engine.training.optimisation.options import parser, plan_of, setup_of
from mercury_engine.training.optimisation.plan import Setup, TrainingPlan
from mercury_engine.training.optimisation.run import Batch, LogRow, TrainingRun, train_until_terminated


class DraftRun(TrainingRun):
    """A run that teaches the writer to draft; `TrainingPlan.files` is the number of windows per step."""

    part = "drafting writer"
    steps: WindowSteps
    validation: DraftMeasure | None

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
        precision: Precision | None = None,
        kernels: bool = False,
    ) -> None:
        """`kernels`: whether the C kernels read, with the engine's quantised weights."""
        self.settings, self.precision, self.kernels = settings or DraftingSettings(), precision, kernels
        super().__init__(base, corpus, folder, plan, device, parent, setup)

    def _network(self, base: Path, device: torch.device) -> Decoder:
        writer = drafting_writer(base, self.plan.rank, device, self.precision)
        reader = kernel_reader(base) if self.kernels else writer
        self.networks = DraftingNetworks(writer, reader, Tokenizer(base).start_id)
        return writer

    def _lay(self, files: Iterable[SourceFile]) -> None:
        plan, held_out = self.plan, self.setup.validation
        self.steps = WindowSteps(self.tokenizer, Mixture(files), plan.files, self.settings, plan.seed)
        self.validation = None
        if held_out:
            windows = held_out_windows(self.tokenizer, held_out, self.settings, self.setup.validation_gaps)
            self.validation = DraftMeasure.of(self.networks, windows, self.settings.slots)

    def _losses(self, batch: Batch) -> Iterator[tuple[Tensor, Any]]:
        slots = self.settings.slots
        for window in batch:
            reading = self.networks.read(window)
            from_reader = self._learns_from_reader(window)
            targets = (reader_targets if from_reader else text_targets)(self.networks.reader, window, reading, slots)
            hidden = write_drafts(self.network, window, reading, slots)
            loss, row = drafting_loss(self.network, hidden, targets, self.settings)
            yield loss / len(batch), row | {"own": float(from_reader)}

    def _learns_from_reader(self, window: Window) -> bool:
        """Whether the window's targets are the reader's own continuations."""
        late = self.elapsed >= 60 * self.plan.minutes * self.settings.reader_from
        return late and window.target_draw < self.settings.reader_share

    def _figures(self, parts: list[Any]) -> LogRow:
        """Means over the windows; `own` is the share of windows with the reader's continuations as targets."""
        scalars = {name: sum(row[name] for row in parts) / len(parts) for name in ("truth", "divergence", "own")}
        by_slot = zip(*(row["agreed"] for row in parts), strict=True)
        return scalars | {"agreed": [sum(slot) / len(parts) for slot in by_slot]}

    def _learned(self, batch: Batch) -> int:
        return sum(len(window.places) for window in batch) * self.settings.slots

    def _speed(self, batch: Batch, seconds: float) -> LogRow:
        rate = self.plan.rate(self.elapsed, self.step)
        return {"slots_per_second": self._learned(batch) / seconds, "rate": rate}

    def _measured(self) -> LogRow:
        assert self.validation is not None
        return self.validation.figures(self.networks)


def draft_parser() -> argparse.ArgumentParser:
    """The options of every run and of drafting."""
    made, usual = parser(__doc__, "draft"), DraftingSettings()
    made.set_defaults(files=1, learning_rate=4e-4, compile=False, validation_gaps=448)
    made.add_argument(
        "--precision",
        choices=PRECISIONS,
        help="mixed: frozen matrices in bfloat16; without it the faster one is measured",
    )
    made.add_argument("--kernels", action="store_true", help="prefill with the C kernels, three times as fast on a CPU")
    made.add_argument("--decay-share", type=float, default=0.8, help="share of the plan in which the rate falls")
    made.add_argument("--averaging", type=float, default=0.99, help="decay per step of the mean that is exported")
    made.add_argument(
        "--reader-share", type=float, default=usual.reader_share, help="share of windows with the reader's own text"
    )
    made.add_argument(
        "--reader-from", type=float, default=usual.reader_from, help="share of the plan before these windows"
    )
    made.add_argument("--save-every", type=float, default=3, help="minutes between checkpoints")
    return made


def main(argv: list[str]) -> int:
    options = draft_parser().parse_args(argv)
    rank = weights.read_config(options.base).adapter_rank or options.rank
    plan = replace(plan_of(options), rank=rank, decay_share=options.decay_share, averaging=options.averaging)
    setup = replace(setup_of(options), save_every=60 * options.save_every)
    settings = DraftingSettings(reader_share=options.reader_share, reader_from=options.reader_from)
    torch.set_num_threads(options.threads)
    run = DraftRun(
        options.base,
        options.corpus,
        options.run,
        plan,
        torch.device(options.device),
        options.parent,
        setup,
        settings,
        options.precision,
        options.kernels,
    )
    train_until_terminated(run, options.leg)
    return 0
