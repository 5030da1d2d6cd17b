"""Train an adapter: `python -m mercury_lab.training adapt --base MODEL --examples KIND --corpus DIR --run DIR`.

An adapter is a low-rank change of every matrix, used only for the rows after the context that a request shares with
others: the blocks around it and the lines above it. The untouched model has read those, quantised as in the engine, and
keeps them cached for requests with any adapter and with none (arXiv 2504.12397). So training differentiates through
some 50 rows per gap only, and the C kernels read the rest.

With `--examples gaps` the corpus is one of source files, and the adapter learns to fill gaps; with `--examples edits`
it is a folder of the `commits` step, and the adapter learns to rewrite a region after the edits made so far.

Clock, legs and checkpoints are those of `train`. `--parent` also takes an adapter's file, to teach that one more. On
SIGTERM the run saves a checkpoint and ends.
"""

import argparse
import random
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mercury_engine.errors import ModelNotFound, RequestError
from mercury_engine.models import adapters, decoder_weights, weights
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.network import ModelConfig
from mercury_engine.prompt.tokenizer import Tokenizer
from torch import Tensor
from torch.nn import functional as F

from mercury_lab.training.adapters.context import BatchedContexts, ContextReading, KernelContexts
from mercury_lab.training.adapters.examples import (
    EditExamples,
    Example,
    Examples,
    ExampleSteps,
    GapExamples,
    Layouter,
)
from mercury_lab.training.adapters.kernel_reader import kernel_reader
from mercury_lab.training.adapters.mixed_precision import (
    PRECISIONS,
    MixedPrecisionNetwork,
    Precision,
    measured_precision,
)
from mercury_lab.training.commits.build import read_split
from mercury_lab.training.data.corpus import SourceFile
from mercury_lab.training.data.folder import source_files
from mercury_lab.training.examples.gaps import GapSettings
from mercury_lab.training.examples.mixture import Mixture
from mercury_lab.training.optimisation.options import parser, plan_of, setup_of
from mercury_lab.training.optimisation.plan import Setup, TrainingPlan
from mercury_lab.training.optimisation.run import Batch, LogRow, TrainingRun, train_until_terminated

GAPS = GapSettings(rest_of_line=0.65, random_span=0.0, in_brackets=0.2)
"""Shares of gaps; the others are of whole lines. None ends where nothing says so: who learns such ends is sure of no
long text."""


class AdapterRun(TrainingRun):
    """A run that trains an adapter; `TrainingPlan.files` is the number of windows or commits per step."""

    steps: ExampleSteps
    validation: list[Example] | None
    contexts: ContextReading
    config: ModelConfig

    def __init__(
        self,
        base: Path,
        corpus: Path,
        folder: Path,
        plan: TrainingPlan,
        device: torch.device,
        parent: Path | None = None,
        setup: Setup | None = None,
        precision: Precision | None = None,
        kernels: bool = True,
    ) -> None:
        """`kernels`: whether the C kernels read the context, with the engine's quantised weights."""
        self.precision, self.kernels = precision, kernels
        super().__init__(base, corpus, folder, plan, device, parent, setup)

    def _start(self, parent: Path) -> Mapping[str, Tensor]:
        """Those of a run, or of an adapter's file, as `export` writes it."""
        if not parent.is_file():
            return super()._start(parent)
        stored = adapters.read(parent.parent, self.config)
        found = next((each for each in stored if each.path == parent), None)
        if found is None:
            raise ModelNotFound(f"{parent} is no adapter; name a run's folder or a file NAME.adapter.safetensors")
        return {name: torch.from_numpy(np.array(factor, np.float32)) for name, factor in found.tensors.items()}

    def _network(self, base: Path, device: torch.device) -> TorchDecoder:
        config = weights.read_config(base)
        if config.adapter_rank:
            raise RequestError(f"{base} has a writer, whose rows an adapter would change; name a model without one")
        self.config = config
        network = MixedPrecisionNetwork(replace(config, adapter_rank=self.plan.rank))
        decoder_weights.fill_reader(network, base)
        network.markers.requires_grad_(False)
        network.to(device)
        if (self.precision or measured_precision(device)) == "mixed":
            network.convert_frozen()
        start = Layouter(Tokenizer(base)).markers.start
        self.contexts = (
            KernelContexts(kernel_reader(base), network, start) if self.kernels else BatchedContexts(network, start)
        )
        return network

    def _lay(self, files: Iterable[SourceFile]) -> None:
        self.steps = ExampleSteps(self._examples(files), self.plan.files, self.plan.seed)
        self.validation = None
        if self.setup.validation:
            self.validation = fixed(self._held_out(self.setup.validation), self.setup.validation_gaps)

    @property
    def spans(self) -> GapSettings:
        """The shares of gaps, and how much of the text around them is shown."""
        return replace(GAPS, prefix_chars=self.plan.context, suffix_chars=self.plan.context // 2)

    @abstractmethod
    def _examples(self, files: Iterable[SourceFile]) -> Examples:
        """What the run learns from."""

    @abstractmethod
    def _held_out(self, folder: Path) -> Examples:
        """What it is measured on."""

    def _losses(self, batch: Batch) -> Iterator[tuple[Tensor, Any]]:
        whole = sum(sum(example.weights) for example in batch)
        for examples in self._passes(batch):
            nats = self._nats(examples)
            weights = torch.tensor([weight for each in examples for weight in each.weights], device=self.network.device)
            yield (nats * weights).sum() / whole, (len(examples), float(nats.detach().sum()))

    def _passes(self, examples: list[Example]) -> Iterator[list[Example]]:
        """As many examples at a time as are read together."""
        size = self.contexts.per_pass
        return (examples[first : first + size] for first in range(0, len(examples), size))

    def _nats(self, examples: list[Example]) -> Tensor:
        """Nats [T] of the targets' tokens, one example after the other."""
        spans = [slice(len(each.markers) - 1, len(each.markers) - 1 + len(each.target)) for each in examples]
        hidden = self.contexts.hidden(examples)
        wanted = torch.cat([of_rows[span] for of_rows, span in zip(hidden, spans, strict=True)])
        target = torch.tensor([token for each in examples for token in each.target], device=self.network.device)
        return F.cross_entropy(self.network.logits(wanted), target, reduction="none")

    def _figures(self, parts: list[Any]) -> LogRow:
        counts, nats = zip(*parts, strict=True)
        return {"examples": sum(counts), "nats": sum(nats)}

    def _learned(self, batch: Batch) -> int:
        return sum(len(example.target) for example in batch)

    def _speed(self, batch: Batch, seconds: float) -> LogRow:
        return {"tokens_per_second": self._learned(batch) / seconds, "rate": self.plan.rate(self.elapsed, self.step)}

    @torch.no_grad()
    def _measured(self) -> LogRow:
        """Nats a token of the gaps themselves, and the weighted mean over all targets."""
        assert self.validation is not None
        scored, weighted = list[float](), list[tuple[float, float]]()
        for examples in self._passes(self.validation):
            nats = iter(self._nats(examples).tolist())
            for example in examples:
                mine = list(islice(nats, len(example.target)))
                scored += mine[-example.scored :]
                weighted += zip(mine, example.weights, strict=True)
        total = sum(weight for _, weight in weighted)
        return {
            "examples": len(self.validation),
            "tokens": len(scored),
            "nats": sum(scored) / len(scored),
            "weighted_nats": sum(nats * weight for nats, weight in weighted) / total,
        }


class GapAdapterRun(AdapterRun):
    """A run that learns to fill the gaps of a corpus; it is measured on a folder of held-out files."""

    part = "gap adapter"

    def _examples(self, files: Iterable[SourceFile]) -> Examples:
        return GapExamples(self.tokenizer, Mixture(files), self.spans, self.plan.gaps)

    def _held_out(self, folder: Path) -> Examples:
        return self._examples(source_files(folder))


class EditAdapterRun(AdapterRun):
    """A run that learns to rewrite regions as commits do; it is measured on the commits' validation split."""

    part = "edit adapter"

    def _files(self, corpus: Path, known: bool) -> Iterable[SourceFile]:
        """Nothing: `_examples` reads the commits, which were checked when they were collected."""
        return ()

    def _examples(self, files: Iterable[SourceFile]) -> Examples:
        return self._of_split(self.corpus_folder, "training")

    def _held_out(self, folder: Path) -> Examples:
        return self._of_split(folder, "validation")

    def _of_split(self, folder: Path, split: str) -> Examples:
        return EditExamples(self.tokenizer, list(read_split(folder, split)), self.spans)


RUNS: dict[str, type[AdapterRun]] = {"gaps": GapAdapterRun, "edits": EditAdapterRun}


def fixed(examples: Examples, count: int) -> list[Example]:
    """Always the same `count` examples, or fewer from a small source."""
    rng, found = random.Random("held out"), list[Example]()
    for _ in range(4 * count):
        if len(found) >= count:
            break
        found += examples.sample(rng)[: max(1, count // 8)]
    return found[:count]


def adapter_parser() -> argparse.ArgumentParser:
    """The options of every run and of adapters."""
    made = parser(__doc__, "adapt")
    made.set_defaults(files=1, gaps=12, rank=16, learning_rate=5e-4, compile=False, validation_gaps=64, context=1200)
    made.add_argument("--examples", choices=RUNS, required=True, help="what the adapter learns")
    made.add_argument(
        "--precision", choices=PRECISIONS, help="of frozen matrices; without it the faster one is measured"
    )
    made.add_argument(
        "--kernels",
        action=argparse.BooleanOptionalAction,
        help="the C kernels read the context (default on a CPU; on a GPU the network does, in batches)",
    )
    made.add_argument("--decay-share", type=float, default=0.5, help="share of the plan in which the rate falls")
    made.add_argument("--averaging", type=float, default=0.98, help="decay per step of the mean that is exported")
    made.add_argument("--save-every", type=float, default=3, help="minutes between checkpoints")
    return made


def main(argv: list[str]) -> int:
    options = adapter_parser().parse_args(argv)
    plan = replace(plan_of(options), decay_share=options.decay_share, averaging=options.averaging)
    setup = replace(setup_of(options), save_every=60 * options.save_every)
    torch.set_num_threads(options.threads)
    folders, device = (options.base, options.corpus, options.run), torch.device(options.device)
    kernels = device.type == "cpu" if options.kernels is None else options.kernels
    run = RUNS[options.examples](*folders, plan, device, options.parent, setup, options.precision, kernels)
    train_until_terminated(run, options.leg)
    return 0
