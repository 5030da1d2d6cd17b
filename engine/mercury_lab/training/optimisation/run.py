"""What all training runs share: folder, checkpoints, legs, the clock of the learning rate, the log."""

import argparse
import hashlib
import json
import pickle
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, TextIO

import torch
from mercury_engine.errors import ModelCorrupt, ModelNotFound
from mercury_engine.models import decoder_weights
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.prompt.tokenizer import Tokenizer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor
from torch.utils.data import Dataset

from mercury_lab.training import element_type
from mercury_lab.training.data.corpus import SourceFile, read_checked, read_files
from mercury_lab.training.optimisation.options import plan_of, setup_of
from mercury_lab.training.optimisation.plan import Setup, TrainingPlan
from mercury_lab.training.optimisation.steps import prefetched

CHECKPOINT = "checkpoint.pt"

WEIGHT_DECAY = 0.01

LogRow = dict[str, Any]
"""One line of the log."""

Batch = list[Any]
"""The data of a step, in parts whose gradients are computed one after the other."""


class TrainingRun(ABC):
    """One run and its folder; a new run starts from the weights of the run in `parent`, if given."""

    part: ClassVar[str]
    """What is trained: "reader" or "writer"."""
    steps: Dataset[list[Any]]
    """Step number -> batch."""
    validation: Any
    """Held-out text, or None."""

    def __init__(
        self,
        base: Path,
        corpus: Path,
        folder: Path,
        plan: TrainingPlan,
        device: torch.device,
        parent: Path | None = None,
        setup: Setup | None = None,
    ) -> None:
        self.corpus = _digest(corpus)
        known = (folder / CHECKPOINT).is_file() and _checkpoint(folder).get("corpus") == self.corpus
        files, self.corpus_folder = self._files(corpus, known), corpus
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.plan, self.setup = folder, plan, setup or Setup()
        torch.manual_seed(plan.seed)
        self.network = self._network(base, device)
        self.tokenizer = Tokenizer(base)
        self.trained = decoder_weights.adapter_parameters(self.network)
        fused = device.type == "cuda"
        self.optimizer = torch.optim.AdamW(self.trained.values(), weight_decay=WEIGHT_DECAY, fused=fused)
        self.step, self.elapsed, self.canvas_tokens = 0, 0.0, 0
        self.stopped = False
        if parent is not None:
            self._copy(self._start(parent), self.trained, parent)
        self.mean = {name: p.detach().clone() for name, p in self.trained.items()}
        self._resume()
        self._lay(files)
        if self.setup.compiled:
            for layer in self.network.layers:
                layer.compile(dynamic=False)

    def _files(self, corpus: Path, known: bool) -> Iterable[SourceFile]:
        """The corpus's files, checked for held-out text unless the run has done that (`known`). Raises HeldOut."""
        return read_files(corpus) if known else read_checked(corpus)

    def _start(self, parent: Path) -> Mapping[str, Tensor]:
        """The weights that a new run starts from. Raises ModelNotFound or ModelCorrupt."""
        return _checkpoint(parent)["adapter"]

    def _resume(self) -> None:
        """Resume from the folder's checkpoint if there is one."""
        if not (self.folder / CHECKPOINT).is_file():
            return
        saved = _checkpoint(self.folder)
        if (part := saved.get("part", "writer")) != self.part:
            raise ModelCorrupt(f"the run in {self.folder} trains a {part}, not a {self.part}; take a new folder")
        self._copy(saved["adapter"], self.trained, self.folder)
        self._copy(saved["mean"], self.mean, self.folder)
        self._load_moments(saved["optimizer"])
        self.step, self.elapsed, self.canvas_tokens = saved["step"], saved["elapsed"], saved["canvas_tokens"]

    @torch.no_grad()
    def _copy(self, saved: Mapping[str, Tensor], into: Mapping[str, Tensor], folder: Path) -> None:
        """Copy saved tensors; those that are not there stay unchanged."""
        for name, target in into.items():
            if name not in saved:
                continue
            if saved[name].shape != target.shape:
                rank = len(saved[next(n for n in saved if n.endswith(".qkv.down"))])
                raise ModelCorrupt(f"the run in {folder} is of another base or rank (--rank {rank}); take a new folder")
            target.copy_(saved[name])

    def save(self) -> None:
        state = {
            "part": self.part,
            "adapter": {name: p.detach().cpu() for name, p in self.trained.items()},
            "mean": {name: p.cpu() for name, p in self.mean.items()},
            "optimizer": self._moments(),
            "step": self.step,
            "elapsed": self.elapsed,
            "canvas_tokens": self.canvas_tokens,
            "plan": asdict(self.plan),
            "corpus": self.corpus,
        }
        scratch = self.folder / "checkpoint.tmp"
        torch.save(state | self.also_saved(), scratch)
        scratch.replace(self.folder / CHECKPOINT)

    def _moments(self) -> dict[str, Any]:
        """The optimiser's state of every parameter, by name."""
        state = self.optimizer.state_dict()["state"]
        return {name: state.get(number, {}) for number, name in enumerate(self.trained)}

    def _load_moments(self, saved: Mapping[str, Any]) -> None:
        """Go on from a state; a parameter without one of AdamW, as after an older run with Muon, starts without."""
        state = {n: saved[name] for n, name in enumerate(self.trained) if "exp_avg" in saved.get(name, {})}
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})

    def also_saved(self) -> dict[str, Any]:
        """What a checkpoint holds besides."""
        return {}

    def one_step(self, batch: Batch) -> LogRow:
        """One optimiser step; returns figures for the log, empty if nothing could be learned."""
        if not batch:
            return {}
        self.optimizer.zero_grad()
        loss, parts = 0.0, []
        for part_loss, part in self._losses(batch):
            part_loss.backward()
            loss += float(part_loss.detach())
            parts.append(part)
        norm = torch.nn.utils.clip_grad_norm_(self.trained.values(), 1.0)
        if not bool(torch.isfinite(norm)):
            return {}
        self.optimizer.param_groups[0]["lr"] = self.plan.rate(self.elapsed, self.step)
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(self.mean.values()), list(self.trained.values()), 1 - self.plan.averaging)
        self.canvas_tokens += self._learned(batch)
        return {"loss": loss, **self._figures(parts)}

    def stop(self) -> None:
        """End the leg after the current step."""
        self.stopped = True

    def leg(self, minutes: float) -> None:
        """Train until the leg or the whole plan is over, or `stop` is called; saves during the leg and at its end."""
        begin, before, saved = self.setup.clock(), self.elapsed, 0.0
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        with Progress(*columns) as progress, (self.folder / "log.jsonl").open("a") as log:
            bar = progress.add_task("training", total=60 * self.plan.minutes)
            paused = self._validate(log, first=True) if self.step == 0 else 0.0
            for batch in prefetched(self.steps, self.step, self.setup.workers):
                if self.stopped or self.elapsed - before >= 60 * minutes or self.elapsed >= 60 * self.plan.minutes:
                    break
                last = self.elapsed
                row = self.one_step(batch)
                self.step += 1
                self.elapsed = before + self.setup.clock() - begin
                if row:
                    row |= {"step": self.step, "elapsed": self.elapsed, "canvas_tokens": self.canvas_tokens}
                    _write(log, row | self._speed(batch, max(self.elapsed - last - paused, 1e-9)))
                    progress.update(bar, completed=self.elapsed, description=_line(row))
                paused = self._validate(log) if self._due(last) else 0.0
                if self.elapsed - before - saved > self.setup.save_every:
                    self.save()
                    saved = self.elapsed - before
        self.save()

    def _due(self, last: float) -> bool:
        """Whether a validation time, or the end of the plan, lies between `last` and now."""
        every, end = self.setup.validate_every, 60 * self.plan.minutes
        return self.elapsed // every > last // every or last < end <= self.elapsed

    def _validate(self, log: TextIO, *, first: bool = False) -> float:
        """Log the running mean's figures on held-out text, if there is any; returns the seconds spent."""
        if self.validation is None:
            return 0.0
        began = time.perf_counter()
        row = {"step": self.step, "elapsed": self.elapsed, "validation": self.validated()}
        _write(log, row | (self._before() if first else {}))
        return time.perf_counter() - began

    def validated(self) -> LogRow:
        """Figures of the running mean on held-out text."""
        with self._averaged():
            return self._measured()

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Put the running mean into the network for the duration of the context."""
        kept = {name: p.detach().clone() for name, p in self.trained.items()}
        self._copy(self.mean, self.trained, self.folder)
        try:
            yield
        finally:
            self._copy(kept, self.trained, self.folder)

    @abstractmethod
    def _network(self, base: Path, device: torch.device) -> TorchDecoder:
        """The base, ready to be trained."""

    @abstractmethod
    def _lay(self, files: Iterable[SourceFile]) -> None:
        """Get the data of the steps and of validation ready."""

    @abstractmethod
    def _losses(self, batch: Batch) -> Iterator[tuple[Tensor, Any]]:
        """The parts of the step's loss, to be differentiated one after the other, each with data for `_figures`."""

    @abstractmethod
    def _figures(self, parts: list[Any]) -> LogRow:
        """A step's figures for the log, from the data of `_losses`."""

    @abstractmethod
    def _learned(self, batch: Batch) -> int:
        """The number of tokens that the step learned from."""

    @abstractmethod
    def _speed(self, batch: Batch, seconds: float) -> LogRow:
        """A step's speed for the log."""

    @abstractmethod
    def _measured(self) -> LogRow:
        """Figures on held-out text."""

    def _before(self) -> LogRow:
        """Additional figures for the first validation."""
        return {}


def move_for_training(network: TorchDecoder, device: torch.device) -> None:
    """Move a network to the device: frozen parameters in its fastest element type, trained ones in float32."""
    dtype = element_type.fastest(device)
    for parameter in network.parameters():
        if not parameter.requires_grad:
            parameter.data = parameter.data.to(dtype)
    network.to(device)


def _checkpoint(folder: Path) -> dict[str, Any]:
    path = folder / CHECKPOINT
    if not path.is_file():
        raise ModelNotFound(f"no {CHECKPOINT} in {folder}; name the folder of a training run")
    try:
        return torch.load(path, weights_only=True, map_location="cpu")
    except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise ModelCorrupt(f"{path} cannot be read ({error}); delete it, or name another folder") from error


def _digest(corpus: Path) -> str:
    """The digest of a corpus folder or shard; a run checks each digest for held-out text only once."""
    found = hashlib.sha256()
    for path in [corpus] if corpus.is_file() else sorted(corpus.glob("*.jsonl.gz")):
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


def _write(log: TextIO, row: LogRow) -> None:
    """Write one line; missing figures are null."""
    log.write(json.dumps(row).replace("NaN", "null") + "\n")
    log.flush()


def _line(row: LogRow) -> str:
    first = f" first slot {row['first']:.2f}" if "first" in row else ""
    return f"step {row['step']} loss {row['loss']:.2f}{first}"


def run_leg(kind: type[TrainingRun], options: argparse.Namespace) -> None:
    """Train one leg of a run of this kind."""
    torch.set_num_threads(options.threads)
    plan, setup, device = plan_of(options), setup_of(options), torch.device(options.device)
    run = kind(options.base, options.corpus, options.run, plan, device, options.parent, setup)
    train_until_terminated(run, options.leg)


def train_until_terminated(run: TrainingRun, minutes: float) -> None:
    """Train one leg; on SIGTERM it ends early, with a checkpoint."""
    before = signal.signal(signal.SIGTERM, lambda *_: run.stop())
    try:
        run.leg(minutes)
    finally:
        signal.signal(signal.SIGTERM, before)
