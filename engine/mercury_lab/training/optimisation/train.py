"""Train the writer's adapter: `python -m mercury_lab.training train --base DIR --corpus DIR --run DIR`.

It runs on a GPU (packed rows, compiled layers) or a CPU. The learning rate follows the elapsed time
of the whole plan, so that a run in several legs still ends annealed. A leg resumes at the last checkpoint in --run,
with the data that would have come next.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from mercury_engine.models import decoder_weights, weights
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.prompt.tokenizer import Tokenizer
from torch import Tensor

from mercury_lab.training.data.corpus import SourceFile
from mercury_lab.training.examples.mixture import Mixture, WindowSampler
from mercury_lab.training.optimisation.loss import LossDivisors, layout_loss, mean_nats
from mercury_lab.training.optimisation.options import parser
from mercury_lab.training.optimisation.run import Batch, LogRow, TrainingRun, move_for_training, run_leg
from mercury_lab.training.optimisation.sharing import StepCost
from mercury_lab.training.optimisation.steps import WriterSteps
from mercury_lab.training.optimisation.validation import Validation


def fresh_writer(base: Path, rank: int, device: torch.device) -> TorchDecoder:
    """The base with a new adapter; for its dtypes see `move_for_training`."""
    config = weights.read_config(base)
    network = TorchDecoder(replace(config, adapter_rank=rank))
    decoder_weights.fill_reader(network, base)
    initialise_markers(network, Tokenizer(base))
    move_for_training(network, device)
    return network


@torch.no_grad()
def initialise_markers(network: TorchDecoder, tokenizer: Tokenizer) -> None:
    """Set the mask to the mean token, and the end to a line break."""
    newline = tokenizer.encode("\n")[0]
    network.markers[0] = network.embedding.mean(0)
    network.markers[1] = network.embedding[newline]  # most gaps end where the reader expects a line break


class WriterRun(TrainingRun):
    """A run of a writer."""

    part = "writer"
    steps: WriterSteps
    validation: Validation | None

    def _network(self, base: Path, device: torch.device) -> TorchDecoder:
        return fresh_writer(base, self.plan.rank, device)

    def _lay(self, files: Iterable[SourceFile]) -> None:
        plan, config = self.plan, self.network.config
        sampler = WindowSampler(self.tokenizer, Mixture(files), plan.gaps, plan.spans)
        self.steps = WriterSteps(sampler, config, plan.files, plan.noise, plan.seed, self.setup.packed).with_room()
        held_out, gaps = self.setup.validation, self.setup.validation_gaps
        self.validation = Validation.of(held_out, self.tokenizer, config, gaps) if held_out else None

    def _losses(self, batch: Batch) -> Iterator[tuple[Tensor, Any]]:
        totals, late_stage = LossDivisors.of(batch), self.plan.late_stage(self.elapsed)
        return (layout_loss(self.network, layout, totals, late_stage) for layout in batch)

    def _figures(self, parts: list[Any]) -> LogRow:
        return dict(mean_nats(parts, self.network.config.end_id))

    def _learned(self, batch: Batch) -> int:
        return sum(layout.rows.slots for layout in batch)

    def _speed(self, batch: Batch, seconds: float) -> LogRow:
        """Tokens written and prefilled per second, TFLOP/s and their share of the device's peak, without padding."""
        work = sum((layout.work for layout in batch), StepCost())
        guesses = self.plan.late_stage(self.elapsed).guesses
        tflops = work.flops(self.network.config, guesses=guesses) / seconds / 1e12
        speed = {"written_per_second": work.written / seconds, "read_per_second": work.read / seconds, "tflops": tflops}
        return speed | ({"peak_share": tflops / self.setup.peak_tflops} if self.setup.peak_tflops else {})

    def _measured(self) -> LogRow:
        assert self.validation is not None
        return self.validation.writer(self.network, self.steps)

    def _before(self) -> LogRow:
        assert self.validation is not None
        return {"reader": self.validation.reader(self.network, self.tokenizer.start_id)}


def main(argv: list[str]) -> int:
    options = parser(__doc__).parse_args(argv)
    run_leg(WriterRun, options)
    return 0
