"""A toy corpus of two packages, and runs on it."""

from pathlib import Path

import torch
from mercury_lab.training.commits.commit_edit import CommitEdit, CommitFile, Step
from mercury_lab.training.optimisation.plan import Setup, TrainingPlan
from mercury_lab.training.optimisation.train import WriterRun

from tests.support import tiny

CODE = '"""A toy."""\n\n' + "".join(
    f"def add_{n}(left, right):\n    total = left + right + {n}\n    return total\n\n\n" for n in range(20)
)

CALLS = "from toy.a import add_1\n\n\n" + "".join(
    f"def call_{n}(value):\n    result = add_{n}(value, {n})\n    print(result)\n    return result\n\n\n"
    for n in range(12)
)

NAMES = "".join(f"def take_{n}(value):\n    return value + {n}\n\n\n" for n in range(12))

PLAN = TrainingPlan(minutes=60, files=1, gaps=3, rank=2)


class Clock:
    """A clock that goes on by a minute whenever it is looked at, so that every step takes one."""

    def __init__(self) -> None:
        self.seconds = -60.0

    def __call__(self) -> float:
        self.seconds += 60.0
        return self.seconds


def base(path: Path) -> Path:
    return tiny.folder(path, rank=0)


def corpus(path: Path) -> Path:
    files = [("toy", "toy/a.py", CODE), ("toy", "toy/b.py", CALLS), ("other", "other/c.py", CALLS[::-1])]
    return tiny.corpus(path, files)


def commit() -> CommitEdit:
    """A commit that renames a parameter in three functions of one file."""
    lines = NAMES.splitlines(keepends=True)
    steps = tuple(Step(0, 4 * n, 4 * n + 2, f"def take_{n}(number):\n    return number + {n}\n") for n in (2, 4, 6))
    assert all("value" in lines[step.start] for step in steps)
    return CommitEdit("owner/name", "0" * 40, (CommitFile("names.py", "python", NAMES),), 1, steps)


def run(folder: Path, plan: TrainingPlan = PLAN, name: str = "run", parent: Path | None = None, **setup) -> WriterRun:
    """A run on the toy corpus; base and corpus are made in the folder when they are missing."""
    if not (folder / "base").exists():
        base(folder / "base")
    if not (folder / "corpus").exists():
        corpus(folder / "corpus")
    made = Setup(**({"clock": Clock()} | setup))
    return WriterRun(folder / "base", folder / "corpus", folder / name, plan, torch.device("cpu"), parent, made)
