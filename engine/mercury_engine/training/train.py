"""Train the writer's adapter: `python -m mercury_engine.training train --base DIR --corpus DIR --run DIR`.

Runs on a GPU (bfloat16 matrices, packed rows, compiled layers) or a CPU. The learning rate follows the elapsed time
of the whole plan, so that a run cut into legs still ends annealed; a leg goes on where the last checkpoint of --run
stands, with the data that would have come next.
"""

import hashlib
import json
import pickle
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TextIO

import torch
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from mercury_engine import weights
from mercury_engine.codec import Codec
from mercury_engine.errors import ModelCorrupt, ModelNotFound
from mercury_engine.model import Network
from mercury_engine.training.corpus import read, read_checked
from mercury_engine.training.loss import Layout, Told, Totals, layout_loss, report
from mercury_engine.training.mixture import Mixture, WindowSampler
from mercury_engine.training.optimizer import Optimizer, by_name
from mercury_engine.training.options import parser, plan_of, setup_of
from mercury_engine.training.plan import Plan, Setup
from mercury_engine.training.sharing import Work
from mercury_engine.training.steps import Steps
from mercury_engine.training.validation import Validation

CHECKPOINT = "checkpoint.pt"

Row = dict[str, Any]
"""One line of the log."""


def prepare(base: Path, rank: int, device: torch.device) -> Network:
    """The base with a fresh adapter: matrices in bfloat16, what is trained in float32."""
    config = weights.read_config(base)
    network = Network(replace(config, adapter_rank=rank))
    weights.fill(network, weights.read_tensors(base), base)
    codec = Codec(base)
    with torch.no_grad():
        newline = codec.encode("\n")[0]
        network.markers[0] = network.embedding.mean(0)
        network.markers[1] = network.embedding[newline]  # most gaps end where the reader expects a line break
    for parameter in network.parameters():
        if not parameter.requires_grad:
            parameter.data = parameter.data.to(torch.bfloat16)
    return network.to(device)


class Run:
    """One training run and its folder; a fresh one starts from the weights of `parent` when there is one."""

    def __init__(
        self,
        base: Path,
        corpus: Path,
        folder: Path,
        plan: Plan,
        device: torch.device,
        parent: Path | None = None,
        setup: Setup | None = None,
    ) -> None:
        self.corpus = _digest(corpus)
        known = (folder / CHECKPOINT).is_file() and _checkpoint(folder).get("corpus") == self.corpus
        files = read(corpus) if known else read_checked(corpus)
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.plan, self.setup = folder, plan, setup or Setup()
        torch.manual_seed(plan.seed)
        self.network = prepare(base, plan.rank, device)
        self.codec = Codec(base)
        self.trained = weights.adapter_parameters(self.network)
        self.optimizer = Optimizer(self.trained, plan.optimizer)
        self.step, self.elapsed, self.canvas_tokens = 0, 0.0, 0
        if parent is not None:
            self._copy(_checkpoint(parent)["adapter"], self.trained, parent)
        self.mean = {name: p.detach().clone() for name, p in self.trained.items()}
        self._resume()
        sampler = WindowSampler(self.codec, Mixture(files), plan.gaps, plan.edits, plan.spans)
        config = self.network.config
        self.steps = Steps(sampler, config, plan.files, plan.noise, plan.seed, self.setup.packed).with_room()
        held_out, gaps = self.setup.validation, self.setup.validation_gaps
        self.validation = Validation.of(held_out, self.codec, config, gaps) if held_out else None
        if self.setup.compiled:
            for layer in self.network.layers:
                layer.compile(dynamic=False)

    def _resume(self) -> None:
        """Go on from the folder's checkpoint when there is one."""
        if not (self.folder / CHECKPOINT).is_file():
            return
        saved = _checkpoint(self.folder)
        self._copy(saved["adapter"], self.trained, self.folder)
        self._copy(saved["mean"], self.mean, self.folder)
        self.optimizer.load(by_name(saved["optimizer"], list(saved["adapter"])))
        self.step, self.elapsed, self.canvas_tokens = saved["step"], saved["elapsed"], saved["canvas_tokens"]

    @torch.no_grad()
    def _copy(self, saved: Mapping[str, Tensor], into: Mapping[str, Tensor], folder: Path) -> None:
        """Take over tensors; those that an older checkpoint lacks stay as they are."""
        for name, target in into.items():
            if name not in saved:
                continue
            if saved[name].shape != target.shape:
                rank = len(saved[next(n for n in saved if n.endswith(".qkv.down"))])
                raise ModelCorrupt(f"the run in {folder} is of another base or rank (--rank {rank}); take a new folder")
            target.copy_(saved[name])

    def save(self) -> None:
        state = {
            "adapter": {name: p.detach().cpu() for name, p in self.trained.items()},
            "mean": {name: p.cpu() for name, p in self.mean.items()},
            "optimizer": self.optimizer.state(),
            "step": self.step,
            "elapsed": self.elapsed,
            "canvas_tokens": self.canvas_tokens,
            "plan": asdict(self.plan),
            "corpus": self.corpus,
        }
        scratch = self.folder / "checkpoint.tmp"
        torch.save(state, scratch)
        scratch.replace(self.folder / CHECKPOINT)

    def one_step(self, layouts: list[Layout]) -> Row:
        """One optimiser step; returns figures for the log, nothing when nothing could be learned."""
        if not layouts:
            return {}
        totals, final = Totals.of(layouts), self.plan.final(self.elapsed)
        self.optimizer.zero_grad()
        loss, told = 0.0, list[Told]()
        for layout in layouts:
            part, of_part = layout_loss(self.network, layout, totals, final)
            part.backward()
            loss += float(part.detach())
            told.append(of_part)
        norm = torch.nn.utils.clip_grad_norm_(self.trained.values(), 1.0)
        if not bool(torch.isfinite(norm)):
            return {}
        self.optimizer.step(self.plan.rate(self.elapsed, self.step))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.mean.values()), list(self.trained.values()), 1 - self.plan.averaging)
        self.canvas_tokens += sum(layout.rows.slots for layout in layouts)
        return {"loss": loss, **report(told, self.network.config.end_id)}

    def leg(self, minutes: float) -> None:
        """Train until the leg or the whole plan is over; checkpoints on the way and at the end."""
        begin, before, saved = self.setup.clock(), self.elapsed, 0.0
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        with Progress(*columns) as progress, (self.folder / "log.jsonl").open("a") as log:
            bar = progress.add_task("training", total=60 * self.plan.minutes)
            paused = self._validate(log, reader=True) if self.step == 0 else 0.0
            for layouts in self.steps.loader(self.step, self.setup.workers):
                if self.elapsed - before >= 60 * minutes or self.elapsed >= 60 * self.plan.minutes:
                    break
                last = self.elapsed
                row = self.one_step(layouts)
                self.step += 1
                self.elapsed = before + self.setup.clock() - begin
                if row:
                    row |= {"step": self.step, "elapsed": self.elapsed, "canvas_tokens": self.canvas_tokens}
                    _write(log, row | self._speed(layouts, self.elapsed - last - paused))
                    progress.update(bar, completed=self.elapsed, description=_line(row))
                paused = self._validate(log) if self._due(last) else 0.0
                if self.elapsed - before - saved > self.setup.save_every:
                    self.save()
                    saved = self.elapsed - before
        self.save()

    def _due(self, last: float) -> bool:
        """Whether a time to validate, or the end of the plan, lies between then and now."""
        every, end = self.setup.validate_every, 60 * self.plan.minutes
        return self.elapsed // every > last // every or last < end <= self.elapsed

    def _validate(self, log: TextIO, *, reader: bool = False) -> float:
        """Log how good the running mean is on held-out gaps, if there are any; the seconds that this took."""
        if not self.validation:
            return 0.0
        began = time.perf_counter()
        row = {"step": self.step, "elapsed": self.elapsed, **self.validated()}
        if reader:
            row["reader"] = self.validation.reader(self.network, self.codec.start_id)
        _write(log, row)
        return time.perf_counter() - began

    def validated(self) -> Row:
        """Figures of the running mean on held-out gaps."""
        assert self.validation is not None
        with self._averaged():
            return {"validation": self.validation.writer(self.network, self.steps)}

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """The network with its running mean."""
        kept = {name: p.detach().clone() for name, p in self.trained.items()}
        self._copy(self.mean, self.trained, self.folder)
        try:
            yield
        finally:
            self._copy(kept, self.trained, self.folder)

    def _speed(self, layouts: list[Layout], seconds: float) -> Row:
        """Tokens written and read a second, TFLOP/s and their share of the device's peak, padding left out."""
        work = sum((layout.work for layout in layouts), Work())
        seconds = max(seconds, 1e-9)
        guesses = self.plan.final(self.elapsed).guesses
        tflops = work.flops(self.network.config, guesses=guesses) / seconds / 1e12
        told = {"written_per_second": work.written / seconds, "read_per_second": work.read / seconds, "tflops": tflops}
        return told | ({"peak_share": tflops / self.setup.peak_tflops} if self.setup.peak_tflops else {})


def _checkpoint(folder: Path) -> dict[str, Any]:
    path = folder / CHECKPOINT
    if not path.is_file():
        raise ModelNotFound(f"no {CHECKPOINT} in {folder}; name the folder of a training run")
    try:
        return torch.load(path, weights_only=True, map_location="cpu")
    except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise ModelCorrupt(f"{path} cannot be read ({error}); delete it, or name another folder") from error


def _digest(corpus: Path) -> str:
    """Of the content of a corpus folder or shard, which is looked through for held-out text once."""
    found = hashlib.sha256()
    for path in [corpus] if corpus.is_file() else sorted(corpus.glob("*.jsonl.gz")):
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


def _write(log: TextIO, row: Row) -> None:
    """One line; figures that do not exist are null."""
    log.write(json.dumps(row).replace("NaN", "null") + "\n")
    log.flush()


def _line(row: Row) -> str:
    return f"step {row['step']} loss {row['loss']:.2f} first slot {row['first']:.2f}"


def main(argv: list[str]) -> int:
    options = parser(__doc__).parse_args(argv)
    torch.set_num_threads(options.threads)
    plan, setup, device = plan_of(options), setup_of(options), torch.device(options.device)
    Run(options.base, options.corpus, options.run, plan, device, options.parent, setup).leg(options.leg)
    return 0
