"""The command-line options of runs, and the plan and setup made from them; some defaults depend on the device."""

import argparse
import math
import os
from pathlib import Path

import torch
from mercury_engine.errors import RequestError
from mercury_engine.prompt.layout import PREFIX_CHARS

from mercury_lab.training.optimisation.plan import Setup, TrainingPlan


def parser(description: str | None, step: str = "train") -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog=f"mercury_lab.training {step}", description=description)
    made.add_argument("--base", type=Path, required=True, help="folder written by the base step")
    made.add_argument("--corpus", type=Path, required=True)
    made.add_argument("--run", type=Path, required=True, help="folder of checkpoints and log; resumed if it exists")
    made.add_argument("--minutes", type=float, default=60, help="planned length of the whole run")
    made.add_argument("--leg", type=float, default=math.inf, help="minutes of this leg; the run can be resumed")
    made.add_argument("--parent", type=Path, help="folder of a run; a new run starts from its weights")
    made.add_argument("--files", type=int, default=2, help="files per step")
    made.add_argument("--gaps", type=int, default=16, help="gaps per file (for the reader: passages)")
    made.add_argument("--canvases", type=int, choices=(3, 4), help="most canvases per gap (4 on a GPU, else 3)")
    made.add_argument(
        "--context", type=int, help=f"characters before the cursor's chunk ({PREFIX_CHARS} on a GPU, else 800)"
    )
    made.add_argument("--learning-rate", type=float, default=1e-3)
    made.add_argument("--rank", type=int, default=32)
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    made.add_argument("--threads", type=int, default=torch.get_num_threads())
    made.add_argument(
        "--compile", action=argparse.BooleanOptionalAction, help="compile the layers, on a GPU only (default there)"
    )
    made.add_argument("--workers", type=int, help="processes that prepare data (all but one core on a GPU, else 0)")
    made.add_argument("--peak-tflops", type=float, default=0.0, help="the device's peak, to log the share of it")
    made.add_argument("--validation", type=Path, help="corpus folder of held-out files to validate on")
    made.add_argument("--validation-gaps", type=int, default=64)
    made.add_argument("--validate-every", type=float, default=15, help="minutes")
    return made


def plan_of(options: argparse.Namespace) -> TrainingPlan:
    on_gpu = _on_gpu(options)
    return TrainingPlan(
        options.minutes,
        options.files,
        options.gaps,
        options.canvases or (4 if on_gpu else 3),
        options.context or (PREFIX_CHARS if on_gpu else 800),
        options.learning_rate,
        options.rank,
        seed=options.seed,
    )


def setup_of(options: argparse.Namespace) -> Setup:
    on_gpu = _on_gpu(options)
    if options.compile and not on_gpu:
        raise RequestError("--compile needs a GPU, because on a CPU every step has different shapes; omit it")
    return Setup(
        packed=on_gpu,
        compiled=on_gpu if options.compile is None else options.compile,
        workers=(max(1, (os.cpu_count() or 2) - 1) if on_gpu else 0) if options.workers is None else options.workers,
        peak_tflops=options.peak_tflops,
        validation=options.validation,
        validation_gaps=options.validation_gaps,
        validate_every=60 * options.validate_every,
    )


def _on_gpu(options: argparse.Namespace) -> bool:
    return torch.device(options.device).type == "cuda"
