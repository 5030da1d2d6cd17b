"""The command-line options that benchmarks share, and the facts about the machine in every record."""

import argparse
import os
from datetime import date
from pathlib import Path
from typing import Any

from mercury_lab.evaluation import suite

BENCHMARKS = Path(__file__).resolve().parents[1]
CORPUS = BENCHMARKS.parent / suite.CORPUS


def parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """The options of every benchmark; `name` is the record's file name."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--json", action="store_true", help="print the record and nothing else")
    made.add_argument("--model", help="a folder or a name (default: the bundled model)")
    made.add_argument("--out", type=Path, default=BENCHMARKS / "results" / f"{name}.json")
    return made


def add_corpus(made: argparse.ArgumentParser, what: str = "source files") -> None:
    """--corpus, a folder of `what`."""
    made.add_argument("--corpus", type=Path, default=CORPUS, help=f"a folder of {what}")


def add_threads(made: argparse.ArgumentParser, default: int) -> None:
    made.add_argument("--threads", type=int, default=default, help=f"CPU threads of the engine (default {default})")


def add_sample(made: argparse.ArgumentParser, limit: int, what: str) -> None:
    """--limit and --seed of a random sample; `what` is counted."""
    made.add_argument("--limit", type=int, default=limit, help=f"{what} (default {limit})")
    made.add_argument("--seed", type=int, default=0)


def circumstances() -> dict[str, Any]:
    """The machine, its load and the date, for a record."""
    return {
        "machine": suite.machine("cpu"),
        "load_average": round(os.getloadavg()[0], 2),
        "date": date.today().isoformat(),
    }
