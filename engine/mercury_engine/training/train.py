"""Teach a frozen reader to write: `python -m mercury_engine.training train --base DIR --corpus DIR --run DIR`.

Same code on CPU and GPU. A run is resumable: its folder holds the last checkpoint, and the learning rate
follows the elapsed time of the whole run, so a leg that is cut short goes on where it was.
"""

import argparse
import json
import math
import random
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from mercury_engine import weights
from mercury_engine.codec import Codec
from mercury_engine.errors import ModelCorrupt, ModelNotFound
from mercury_engine.model import Network
from mercury_engine.training.corpus import SourceFile, assert_no_held_out, read
from mercury_engine.training.gaps import GapSampler
from mercury_engine.training.objective import Noise, canvas_loss, corrupt

CHECKPOINT = "checkpoint.pt"


@dataclass(frozen=True, slots=True)
class Plan:
    """What one run does; stored with its checkpoints."""

    minutes: float
    files: int = 2
    gaps: int = 16
    learning_rate: float = 1e-3
    rank: int = 32
    decay_share: float = 0.4
    final_share: float = 0.1
    """Of the planned time, at the end: canvases show the model's own guesses, right answers are sharpened."""
    averaging: float = 0.98
    """Decay per step of the running mean of the weights, which is what is exported."""
    seed: int = 0


class Mixture:
    """Endless files, the share of each language fixed, whole corpus in memory."""

    def __init__(self, corpus: Path, rng: random.Random, python_share: float = 0.5) -> None:
        self.rng, self.python_share = rng, python_share
        self.files: dict[str, list[SourceFile]] = {}
        for file in read(corpus):
            self.files.setdefault(file.language, []).append(file)
        if not self.files:
            raise ModelCorrupt(f"no source files in {corpus}; run the corpus step first")

    def draw(self) -> SourceFile:
        others = [name for name in self.files if name != "python"]
        if "python" in self.files and (not others or self.rng.random() < self.python_share):
            return self.rng.choice(self.files["python"])
        sizes = [len(self.files[name]) ** 0.5 for name in others]
        return self.rng.choice(self.files[self.rng.choices(others, sizes)[0]])


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


def rate(elapsed: float, step: int, plan: Plan) -> float:
    """Warm-up over 30 steps, constant, then linear to a twentieth over the last part of the planned time."""
    left = 1.0 - elapsed / (60 * plan.minutes)
    return plan.learning_rate * min(1.0, (step + 1) / 30) * max(0.05, min(1.0, left / plan.decay_share))


def noise(elapsed: float, plan: Plan) -> Noise:
    """The usual corruption, and that of the last part of the planned time."""
    final = elapsed > 60 * plan.minutes * (1 - plan.final_share)
    return Noise(own=0.25, sharpen=0.05) if final else Noise()


class Run:
    """One training run and its folder; a fresh one starts from the weights of `parent` when there is one."""

    def __init__(
        self, base: Path, corpus: Path, folder: Path, plan: Plan, device: torch.device, parent: Path | None = None
    ) -> None:
        assert_no_held_out(corpus)
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.plan = folder, plan
        self.network = prepare(base, plan.rank, device)
        self.codec = Codec(base)
        self.trained = weights.adapter_parameters(self.network)
        self.optimizer = torch.optim.AdamW(list(self.trained.values()), lr=plan.learning_rate, weight_decay=0.01)
        self.step, self.elapsed, self.canvas_tokens = 0, 0.0, 0
        self.rng = random.Random(plan.seed)
        if parent is not None:
            self.copy(_checkpoint(parent))
        self.mean = {name: p.detach().clone() for name, p in self.trained.items()}
        self.resume()
        self.mixture = Mixture(corpus, self.rng)
        self.sampler = GapSampler(self.codec, self.rng)

    def resume(self) -> None:
        """Go on from the folder's checkpoint when there is one."""
        if not (self.folder / CHECKPOINT).is_file():
            return
        saved = _checkpoint(self.folder)
        self.copy(saved)
        self.optimizer.load_state_dict(saved["optimizer"])
        with torch.no_grad():
            for name, mean in self.mean.items():
                mean.copy_(saved["mean"][name])
        self.step, self.elapsed, self.canvas_tokens = saved["step"], saved["elapsed"], saved["canvas_tokens"]
        self.rng.seed(f"{self.plan.seed}/{self.step}")

    @torch.no_grad()
    def copy(self, saved: dict[str, Any]) -> None:
        """Take over the weights of a checkpoint."""
        for name, parameter in self.trained.items():
            parameter.copy_(saved["adapter"][name])

    def save(self) -> None:
        state = {
            "adapter": {name: p.detach().cpu() for name, p in self.trained.items()},
            "mean": {name: p.cpu() for name, p in self.mean.items()},
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "elapsed": self.elapsed,
            "canvas_tokens": self.canvas_tokens,
            "plan": asdict(self.plan),
        }
        scratch = self.folder / "checkpoint.tmp"
        torch.save(state, scratch)
        scratch.replace(self.folder / CHECKPOINT)

    def one_step(self) -> dict[str, float | list[float]]:
        """One optimiser step; returns what the log keeps."""
        gaps = [g for _ in range(self.plan.files) for g in self.sampler.gaps(self.mixture.draw(), self.plan.gaps)]
        gaps = [g for g in gaps if g.near]
        if not gaps:
            return {}
        slots = self.rng.choice((8, 16, 16, 24, 32))
        corruption = noise(self.elapsed, self.plan)
        canvases = corrupt(self.network, gaps, slots, self.rng, corruption)
        losses = canvas_loss(self.network, gaps, canvases, self.codec.start_id, corruption)
        self.optimizer.zero_grad()
        losses.total.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.trained.values(), 1.0)
        if not bool(torch.isfinite(norm)):
            return {}
        self.optimizer.step()
        torch._foreach_lerp_(list(self.mean.values()), list(self.trained.values()), 1 - self.plan.averaging)
        self.canvas_tokens += sum(map(len, (c.inputs for c in canvases)))
        return {"loss": float(losses.total.detach()), "first": losses.first, "by_slot": losses.by_slot}

    def leg(self, minutes: float) -> None:
        """Train until the leg or the whole plan is over; a checkpoint every two minutes and at the end."""
        begin, before, saved = time.monotonic(), self.elapsed, 0.0
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        with Progress(*columns) as progress, (self.folder / "log.jsonl").open("a") as log:
            bar = progress.add_task("training", total=60 * self.plan.minutes)
            while (spent := time.monotonic() - begin) < 60 * minutes and self.elapsed < 60 * self.plan.minutes:
                for group in self.optimizer.param_groups:
                    group["lr"] = rate(self.elapsed, self.step, self.plan)
                row = self.one_step()
                self.step += 1
                self.elapsed = before + time.monotonic() - begin
                if row:
                    row |= {"step": self.step, "elapsed": self.elapsed, "canvas_tokens": self.canvas_tokens}
                    log.write(json.dumps(row).replace("NaN", "null") + "\n")
                    log.flush()
                    progress.update(bar, completed=self.elapsed, description=_line(row))
                if spent - saved > 120:
                    self.save()
                    saved = spent
        self.save()


def _checkpoint(folder: Path) -> dict[str, Any]:
    path = folder / CHECKPOINT
    if not path.is_file():
        raise ModelNotFound(f"no {CHECKPOINT} in {folder}; name the folder of a training run")
    return torch.load(path, weights_only=True, map_location="cpu")


def _line(row: dict[str, Any]) -> str:
    return f"step {row['step']} loss {row['loss']:.2f} first slot {row['first']:.2f}"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mercury_engine.training train", description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="folder written by the base step")
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True, help="folder of checkpoints and log; resumed when it exists")
    parser.add_argument("--minutes", type=float, default=60, help="planned length of the whole run")
    parser.add_argument("--leg", type=float, default=math.inf, help="stop after this many minutes, to be resumed")
    parser.add_argument("--parent", type=Path, help="folder of the run whose weights a fresh run starts from")
    parser.add_argument("--files", type=int, default=2, help="files per step")
    parser.add_argument("--gaps", type=int, default=16, help="gaps per file")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    plan = Plan(options.minutes, options.files, options.gaps, options.learning_rate, options.rank, seed=options.seed)
    device = torch.device(options.device)
    Run(options.base, options.corpus, options.run, plan, device, options.parent).leg(options.leg)
    return 0
