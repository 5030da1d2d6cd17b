"""Train a low-rank change: `python -m mercury_lab.training adapt --base MODEL --examples KIND --data DIR --out DIR`.

`gaps` of source files and `edits` of commits give an adapter of a model with a gap format: the untouched model
reads the context, so that adapters share what is cached. `masked` gaps turn a causal model into one that
denoises; its folder is written whole.
"""

import argparse
import json
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from mercury_engine.errors import RequestError
from mercury_engine.models import weights
from mercury_engine.models.weights import AdapterName
from mercury_engine.prompt.tokenizer import Tokenizer
from numpy.typing import NDArray
from peft import PeftModel
from rich.progress import track
from safetensors.numpy import save_file

from mercury_lab.training.commits.build import read_split
from mercury_lab.training.conversion.adapter_file import write_adapter
from mercury_lab.training.data.selection import source_files, training_files
from mercury_lab.training.examples.gaps import GapSettings
from mercury_lab.training.examples.masked import CanvasSampler, MaskedTokens
from mercury_lab.training.examples.mixture import Mixture
from mercury_lab.training.examples.requests import EditExamples, GapExamples
from mercury_lab.training.rows import Rows, nats, rows_of
from mercury_lab.training.transformer import causal_model, factors, put_factors, with_change

SPANS = GapSettings(rest_of_line=0.65, random_span=0.0, in_brackets=0.2, prefix_chars=1200, suffix_chars=600)
"""Shares of gaps; the others are of whole lines. None ends where nothing says so: who learns such ends is sure of no
long text."""

WARM_UP = 0.05
"""Share of the steps in which the learning rate rises; afterwards it falls to nothing."""

MAX_GRADIENT = 1.0

HELD_OUT_WINDOWS = 64
"""Windows or commits to measure with."""

Sampler = Callable[[random.Random], list[Rows]]
"""Draws the rows of one window or commit; may draw none."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how fast to learn."""

    steps: int
    windows: int = 1
    """Windows or commits of a step."""
    learning_rate: float = 5e-4
    seed: int = 0


def train(model: PeftModel, sample: Sampler, start_id: int, plan: Plan) -> Iterator[float]:
    """The weighted mean of nats of every step, before what the step changes. Equal seeds draw equal examples."""
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(learned, plan.learning_rate, weight_decay=0.0)
    rising = max(1, round(WARM_UP * plan.steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / rising, (plan.steps - step) / max(1, plan.steps - rising))
    )
    for step in range(plan.steps):
        rng = random.Random(f"{plan.seed}/{step}")
        batch = [rows for _ in range(plan.windows) for rows in sample(rng)]
        whole = sum(weight for rows in batch for _, _, weight in rows.predicted)
        if not whole:
            continue
        total = 0.0
        for rows in batch:
            each, weight = nats(model, rows, start_id)
            loss = (each * weight).sum() / whole
            loss.backward()
            total += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(learned, MAX_GRADIENT)
        optimiser.step()
        optimiser.zero_grad()
        schedule.step()
        yield total


@torch.no_grad()
def mean_nats(model: PeftModel, held_out: Sequence[Rows], start_id: int) -> float:
    """The weighted mean of nats of rows that are not learned."""
    found = [nats(model, rows, start_id) for rows in held_out]
    return float(sum((each * weight).sum() for each, weight in found) / sum(weight.sum() for _, weight in found))


def sampler(kind: str, base: Path, data: Path, gaps: int, held_out: Path | None = None) -> Sampler:
    """What draws examples of a kind from a folder of packages, or of commits. Raises MercuryError.

    No file with text of the `held_out` folder is drawn. To measure with it, name it as `data`, too.
    """
    tokenizer = Tokenizer(base)
    if kind == "edits":
        edits = EditExamples(tokenizer, list(read_split(data, "validation" if data == held_out else "training")), SPANS)
        return lambda rng: [rows_of(each) for each in edits.sample(rng)]
    mixture = Mixture(source_files(data) if data == held_out else training_files(data, held_out))
    if kind == "gaps":
        drawn = GapExamples(tokenizer, mixture, SPANS, gaps)
        return lambda rng: [rows_of(each) for each in drawn.sample(rng)]
    canvases = CanvasSampler(tokenizer, mixture, _masked_tokens(base), gaps)
    return lambda rng: [rows_of(each) for each in canvases.sample(rng)]


def export(model: PeftModel, kind: str, base: Path, out: Path) -> Path:
    """Write an adapter's file, or with `masked` the folder of a model that denoises; returns the file's path."""
    out.mkdir(parents=True, exist_ok=True)
    if kind != "masked":
        path = out / weights.adapter_file("gap" if kind == "gaps" else "edit")
        write_adapter(path, weights.read_config(base), factors(model))
        return path
    if not (base / "config.json").is_file():
        raise RequestError(f"{base} is no folder of safetensors, which a model that denoises is written from")
    for name in ("model.safetensors", "tokenizer.json"):
        shutil.copyfile(base / name, out / name)
    tokens = _masked_tokens(base)
    ids = {"mask_token_id": tokens.mask, "expand_token_id": tokens.expand, "eos_token_id": tokens.delete}
    config = json.loads((base / "config.json").read_text("utf-8")) | ids
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    path = out / weights.READER_FILE
    save_file(factors(model), path)
    return path


def start_of(base: Path) -> int:
    """The token that every text begins with."""
    tokenizer = Tokenizer(base)
    return tokenizer.start_id if tokenizer.markers is None else tokenizer.markers.start


def _stored(folder: Path, base: Path, kind: str) -> dict[str, NDArray[np.float32]]:
    """The adapter of a folder to begin with. Raises ModelError, and RequestError if there is none."""
    name: AdapterName = "gap" if kind == "gaps" else "edit"
    found = weights.read_adapters(folder, weights.read_config(base)).get(name)
    if found is None:
        raise RequestError(f"{folder} has no {weights.adapter_file(name)}")
    return {each: found.matrix(each).floats() for each in found.names}


def _held_out(options: argparse.Namespace) -> list[Rows]:
    """The same rows every time; none without a folder of them."""
    if options.held_out is None:
        return []
    sample = sampler(options.examples, options.base, options.held_out, 1, options.held_out)
    return [rows for seed in range(HELD_OUT_WINDOWS) for rows in sample(random.Random(f"held out {seed}"))]


def _masked_tokens(base: Path) -> MaskedTokens:
    return MaskedTokens.of(Tokenizer(base), weights.read_config(base).vocab_size)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mercury_lab.training adapt", description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="model folder or GGUF file")
    parser.add_argument("--examples", choices=("gaps", "edits", "masked"), required=True)
    parser.add_argument("--data", type=Path, required=True, help="folder of clones, or what `commits` wrote")
    parser.add_argument("--out", type=Path, required=True, help="folder for the result")
    parser.add_argument("--held-out", type=Path, help="folder of the same kind, to measure with and not to learn from")
    parser.add_argument("--parent", type=Path, help="folder with an adapter to begin with")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--windows", type=int, default=1, help="files or commits of a step (default: 1)")
    parser.add_argument("--gaps", type=int, default=12, help="gaps of a file (default: 12)")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args(argv)
    sample = sampler(options.examples, options.base, options.data, options.gaps, options.held_out)
    model = with_change(causal_model(options.base), options.rank).to(options.device)
    if options.parent:
        put_factors(model, _stored(options.parent, options.base, options.examples))
    measured = [rows for rows in _held_out(options) if rows.predicted]
    start = start_of(options.base)
    plan = Plan(options.steps, options.windows, options.learning_rate, options.seed)
    if measured:
        print(f"held out: {mean_nats(model, measured, start):.3f} nats a token")
    for step, loss in enumerate(track(train(model, sample, start, plan), "Training", total=plan.steps)):
        if step % 10 == 0:
            print(f"step {step}: {loss:.3f} nats a token")
    if measured:
        print(f"held out: {mean_nats(model, measured, start):.3f} nats a token")
    print(export(model, options.examples, options.base, options.out))
    return 0
