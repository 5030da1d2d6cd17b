"""What all suites share: command-line options, the record of a run, and its output."""

import argparse
import json
import platform
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar, get_args

from mercury_engine.errors import RequestError
from mercury_engine.loading import Backend
from mercury_engine.models.gpu import nvidia_gpus
from rich.console import Console
from rich.progress import track
from rich.table import Table

from mercury_lab.engine import Engine
from mercury_lsp.settings import Eagerness

SuiteRecord = dict[str, Any]

T = TypeVar("T")

CORPUS = Path("runs/held_out_sample")
"""Where `make eval` and the benchmarks put the files of other projects that they complete."""

DEVICES = ("auto", "cpu", "cuda")

PROGRESS_CONSOLE = Console(stderr=True)


def parser(name: str, description: str | None, limit: int, what: str) -> argparse.ArgumentParser:
    """The options of a suite that asks an engine; `limit`: the default of --limit, `what`: the items that it counts."""
    made = _parser(name, description)
    made.add_argument("--corpus", type=Path, default=CORPUS, help="a folder of source files")
    made.add_argument("--limit", type=count, default=limit, help=f"{what} (default {limit})")
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--device", choices=DEVICES, default="auto")
    made.add_argument("--backend", choices=get_args(Backend), default="auto")
    return made


def server_parser(name: str, description: str | None, what: str) -> argparse.ArgumentParser:
    """The options of a suite that asks a language server; `what`: the items that --limit counts, by default all."""
    made = _parser(name, description)
    made.add_argument("--device", choices=DEVICES)
    made.add_argument("--eagerness", choices=get_args(Eagerness), help="the setting (default: medium)")
    made.add_argument("--limit", type=count, help=f"{what} (default: all)")
    return made


def server_settings(options: argparse.Namespace) -> SuiteRecord:
    """The server's settings that the options name."""
    named = {name: getattr(options, name) for name in ("model", "device", "threads", "eagerness")}
    named["editModel"] = getattr(options, "edit_model", None)
    return {name: value for name, value in named.items() if value is not None}


def _parser(name: str, description: str | None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog=f"mercury_lab.evaluation {name}", description=description)
    made.add_argument("--model", help="a folder or a name (default: the bundled model)")
    made.add_argument("--threads", type=count)
    made.add_argument("--json", action="store_true", help="print the record and nothing else")
    made.add_argument("--out", type=Path, help="also write the record to this file")
    return made


def count(text: str) -> int:
    """An option's value: an integer from 1."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def load_engine(options: argparse.Namespace, model: str | Path | None = None) -> Engine:
    """The engine that the options name, or another model with the same options."""
    name = options.model if model is None else model
    return Engine.load(name, device=options.device, threads=options.threads, backend=options.backend)


def progress(items: Sequence[T], what: str) -> Iterable[T]:
    """The items, with a progress bar on stderr; stdout belongs to the record."""
    return track(items, what, console=PROGRESS_CONSOLE)


def circumstances(engine: Engine, options: argparse.Namespace) -> SuiteRecord:
    """The settings and the machine that a figure depends on, apart from the model's skill."""
    return {
        "model": engine.name,
        "corpus": str(options.corpus),
        "limit": options.limit,
        "seed": options.seed,
        "device": engine.device,
        "machine": machine(engine.device),
        "backend": options.backend,
        "threads": options.threads,
        "torch": version("torch") if engine.reader.backend == "torch" else None,
    }


def machine(device: str) -> str:
    """The processor, and the accelerator if one is used."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text("utf-8", "replace").splitlines() if path.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    name = names[0] if names else platform.processor() or platform.machine()
    found = f"{name}, {len(names) or 'unknown'} cores, {platform.system()} {platform.machine()}"
    return f"{nvidia_gpus()[0]}; {found}" if device.startswith("cuda") else found


def deliver(record: SuiteRecord, table: Table, options: argparse.Namespace) -> None:
    """Print the record or the table; write the file that the options request."""
    text = json.dumps(record, indent=2)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n")
    if options.json:
        sys.stdout.write(text + "\n")
    else:
        Console(width=None if sys.stdout.isatty() else 120).print(table)


def store_settings(folder: Path, **fitted: Any) -> None:
    """Store fitted values in the model's settings.json; its other entries stay. Raises RequestError for a file."""
    if folder.is_file():
        raise RequestError(f"{folder} is a file without settings; put it in a folder of its own and name the folder")
    path = folder / "settings.json"
    kept = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    path.write_text(json.dumps(kept | fitted, indent=2) + "\n")


def percent(value: float | None) -> str:
    """A share as a percentage for a table; "-" for None."""
    return "-" if value is None else f"{value:.1%}"
