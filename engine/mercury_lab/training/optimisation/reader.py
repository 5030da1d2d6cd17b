"""Train the reader: `python -m mercury_lab.training reader --base DIR --corpus DIR --run DIR`.

The base model was trained to read one text from its beginning. This step trains it on the context of an editor: blocks
that do not see each other, with the blocks from below the cursor first. It learns a low-rank change of every matrix,
which is added to the matrix when the model is loaded, so that prefill costs no more than before. Clock, legs and
checkpoints work as in `train`.
"""

import argparse
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from mercury_engine.errors import ModelCorrupt
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.prompt.layout import PREFIX_CHARS, SUFFIX_CHARS
from torch import Tensor

from mercury_lab.training.data.corpus import SourceFile, read_files
from mercury_lab.training.examples.mixture import Mixture
from mercury_lab.training.examples.passages import Passage, PassageSteps
from mercury_lab.training.optimisation import tuned
from mercury_lab.training.optimisation.options import parser
from mercury_lab.training.optimisation.run import Batch, LogRow, TrainingRun, run_leg

PASSAGES_PER_FILE = 4
"""Passages per held-out file."""


class ReaderRun(TrainingRun):
    """One training run of a reader; the plan's `gaps` counts passages per file."""

    part = "reader"
    validation: list[list[Passage]] | None

    def _network(self, base: Path, device: torch.device) -> TorchDecoder:
        return tuned.fresh_reader(base, self.plan.rank, device)

    def _lay(self, files: Iterable[SourceFile]) -> None:
        self.steps = PassageSteps(self.tokenizer, Mixture(files), self.plan.files, self.plan.gaps, self.plan.seed)
        self.validation = self._held_out(self.setup.validation) if self.setup.validation else None

    def _held_out(self, folder: Path) -> list[list[Passage]]:
        """Fixed passages with the server's full context; raises ModelCorrupt if there are none."""
        steps = PassageSteps(
            self.tokenizer, Mixture(read_files(folder)), 1, PASSAGES_PER_FILE, 0, ((PREFIX_CHARS, SUFFIX_CHARS),)
        )
        found = [
            passages for step in range(self.setup.validation_gaps // PASSAGES_PER_FILE) for passages in steps[step]
        ]
        if not found:
            raise ModelCorrupt(f"no file of {folder} is long enough to validate on; name another corpus folder")
        return found

    def _losses(self, batch: Batch) -> Iterator[tuple[Tensor, Any]]:
        together = batch if self.network.device.type == "cuda" else [list(chain.from_iterable(batch))]
        return tuned.passage_losses(self.network, together, self.tokenizer.start_id)

    def _figures(self, parts: list[Any]) -> LogRow:
        return {"predicted": sum(map(len, parts))}

    def _learned(self, batch: Batch) -> int:
        return tuned.predicted_tokens(batch)

    @torch.no_grad()
    def _measured(self) -> LogRow:
        assert self.validation is not None
        nats = torch.cat(
            [part for _, part in tuned.passage_losses(self.network, self.validation, self.tokenizer.start_id)]
        )
        return {"nats": float(nats.mean()), "tokens": len(nats)}

    def _speed(self, batch: Batch, seconds: float) -> LogRow:
        """Predicted tokens and prefilled block tokens per second."""
        return {
            "predicted_per_second": tuned.predicted_tokens(batch) / seconds,
            "read_per_second": tuned.read_tokens(batch) / seconds,
        }


def options() -> argparse.ArgumentParser:
    """The options of every run; not compiled even on a GPU, because every step has different shapes."""
    made = parser(__doc__, "reader")
    made.set_defaults(files=1, gaps=12, rank=16, compile=False)
    return made


def main(argv: list[str]) -> int:
    run_leg(ReaderRun, options().parse_args(argv))
    return 0
