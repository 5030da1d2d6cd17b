"""The steps of half an hour on a borrowed GPU: the commands of each, and the time that each may take."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpu_session.reader_start import lay_out

ROOT = Path(__file__).resolve().parents[2]
BUNDLED = "mercury-135m"
BASE = "qwen2.5-coder-0.5b"
HELD_OUT = ROOT / "tests" / "data" / "held_out"
KERNELS = "regex:^_(project_qkv|attend|linear|tell|join)$"
"""Kernels of a pass, whose counters are read."""

RUN_TESTS = ("-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider")


@dataclass(frozen=True, slots=True)
class Session:
    """Where things are: `inputs` holds what was received and the runs, `out` what is copied back."""

    inputs: Path
    out: Path
    device: str = "cuda"
    minutes: float = 8.0
    """Minutes of training; the other commands have limits of their own."""

    @property
    def training_limit(self) -> float:
        """Minutes that a training command may take; a busy CPU takes minutes to import torch."""
        return self.minutes + (1.5 if self.device == "cuda" else 15)

    @property
    def bundled(self) -> Path:
        return self.inputs / BUNDLED

    @property
    def base(self) -> Path:
        """The larger base: a GGUF file, or a folder."""
        file = self.inputs / f"{BASE}.gguf"
        return file if file.exists() else self.inputs / BASE

    def run(self, name: str) -> Path:
        """The folder of a training run; the next leg continues it."""
        return self.inputs / "runs" / name

    def parent(self, name: str) -> Path:
        """The run whose weights a new one starts from, if there is such a folder."""
        return self.inputs / "parents" / name


@dataclass(frozen=True, slots=True)
class Command:
    """A command and its limit in minutes; the log has its name. `optional`: the step goes on if it fails."""

    name: str
    words: tuple[str, ...]
    minutes: float
    optional: bool = False


def python(name: str, *words: object, minutes: float, optional: bool = False) -> Command:
    """A command of this interpreter."""
    return Command(name, (sys.executable, *map(str, words)), minutes, optional)


def check(session: Session) -> list[Command]:
    """Do the kernels compute what they should, and how fast?"""
    versions = "import torch, triton, platform as p; print(p.python_version(), torch.__version__, triton.__version__)"
    if session.device == "cpu":
        return [python("versions", "-c", versions, minutes=1)]
    packed = "tests/lab/training/test_packed.py"
    split = ("tests/kernels/test_attention.py", "tests/kernels/test_linear.py", "-x")
    memcheck = ("compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "9", sys.executable)
    return [
        python("versions", "-c", versions, minutes=1),
        python("kernels", *RUN_TESTS, "-n", "8", "tests/kernels", packed, minutes=4, optional=True),
        python(
            "gpu", "benchmarks/gpu.py", "--model", session.bundled, "--out", session.out, minutes=3.8, optional=True
        ),
        Command("memcheck", (*memcheck, *RUN_TESTS, *split), 1, optional=True),
    ]


def profile(session: Session) -> list[Command]:
    """Where does a kernel's time go?"""
    fills = ("benchmarks/gpu.py", "--model", session.bundled, "--gaps", "4")
    if session.device == "cpu":
        return [python("gpu", *fills, "--device", "cpu", "--out", session.out, minutes=2)]
    counted = ("ncu", "--csv", "--set", "basic", "--kernel-name", KERNELS, "--launch-count", "60", sys.executable)
    return [Command("ncu", (*counted, *map(str, fills), "--out", "/tmp/ncu"), 2, optional=True)]


def diffusion(session: Session) -> list[Command]:
    """Teach the larger base to denoise gaps, in three legs."""
    learning = (
        *_training("denoiser", session, session.base, session.inputs / "corpus.jsonl.gz", "denoiser", legs=3),
        *("--validation", HELD_OUT, "--validation-gaps", 256 if session.device == "cuda" else 8),
        *("--files", 16 if session.device == "cuda" else 1),
    )
    return [python("train", *learning, minutes=session.training_limit)]


def edits(session: Session) -> list[Command]:
    """Teach the larger base to rewrite regions as commits do."""
    return _adapter(session, "edits", "edit", session.inputs / "commits", session.inputs / "commits", 8)


def gaps(session: Session) -> list[Command]:
    """Teach the larger base to fill gaps."""
    return _adapter(session, "gaps", "gap", session.inputs / "corpus.jsonl.gz", HELD_OUT, 2)


def _adapter(session: Session, examples: str, name: str, corpus: Path, validation: Path, files: int) -> list[Command]:
    """Leg after leg of the same run: the rate falls over two legs."""
    learning = (
        *_training("adapt", session, session.base, corpus, name, legs=2),
        *("--examples", examples, "--validation", validation, "--files", files),
        *("--validation-gaps", 256 if session.device == "cuda" else 8),
        *("--save-every", 1),
    )
    return [
        python("train", *learning, minutes=session.training_limit),
        python("export", *_export(session, session.base, name), minutes=1),
    ]


def reader(session: Session) -> list[Command]:
    """Teach the bundled model's reader further, and compare it with the one before."""
    base, out = session.inputs / "reader-base", session.run("reader-out")
    rank, small = lay_out(session.bundled, base, session.parent("reader"), out), session.device == "cpu"
    learning = (
        *_training("reader", session, base, session.inputs / "corpus.jsonl.gz", "reader", legs=1),
        *("--rank", rank, "--files", 1 if small else 24, "--gaps", 4 if small else 16),  # which share a file's blocks
        *("--validation", session.inputs / "held_out.jsonl.gz"),
    )
    return [
        python("train", *learning, minutes=session.training_limit),
        python("export", *_export(session, base, "reader"), minutes=1),
        *(_compared(session, name, model) for name, model in (("before", session.bundled), ("after", out))),
    ]


def _compared(session: Session, name: str, model: Path) -> Command:
    """How many gaps of held-out files a model fills exactly."""
    limit = 1 if session.device == "cpu" else 25
    words = ("--model", model, "--corpus", HELD_OUT, "--device", session.device, "--limit", limit)
    out = session.out / f"infill-{name}.json"
    return python(
        f"infill-{name}", "-m", "mercury_lab.evaluation", "infill", *words, "--out", out, minutes=1.5, optional=True
    )


def _training(command: str, session: Session, base: Path, corpus: Path, name: str, legs: int) -> tuple[object, ...]:
    """A leg; a run that is new starts from the weights that were sent along, if any were."""
    parent = session.parent(name)
    begin = ("--parent", parent) if parent.exists() and not session.run(name).exists() else ()
    return (
        *("-m", "mercury_lab.training", command, "--device", session.device, "--base", base, "--corpus", corpus),
        *("--run", session.run(name), "--minutes", legs * session.minutes, "--leg", session.minutes),
        *("--validate-every", max(session.minutes / 2, 0.01), *begin),
    )


def _export(session: Session, base: Path, name: str) -> tuple[object, ...]:
    run = session.run(name)
    return (
        "-m",
        "mercury_lab.training",
        "export",
        "--base",
        base,
        "--run",
        run,
        "--out",
        session.run(f"{name}-out"),
    )


STEPS: dict[str, Callable[[Session], list[Command]]] = {
    "check": check,
    "diffusion": diffusion,
    "edits": edits,
    "gaps": gaps,
    "reader": reader,
    "profile": profile,
}

RUNS = {"diffusion": "denoiser", "edits": "edit", "gaps": "gap", "reader": "reader"}
"""By step: the training run whose weights and log are copied back."""
