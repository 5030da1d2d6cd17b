"""Measure what an installation costs: `python benchmarks/installation.py [--entry NAME] [--quick] [--json]`.

It builds the wheel, installs it in a fresh virtual environment and measures that: the space it takes, the time from
starting the command to the first suggestion, and the memory while typing in twenty files, for one process that serves
an editor alone and for a daemon and its relay. The record keeps one entry for each --entry, so that
versions can be compared. Starts are timed with the files in the system's page cache and, where the system allows it
(root, on Linux), without; other processes can only lengthen them, so the fastest of several runs counts.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import memory
from connections import shared_mb
from mercury_engine.errors import MercuryError
from mercury_lab.editing.client import Client
from mercury_lab.evaluation import suite
from on_all import options as options_of_all
from on_installation import sizes, start
from on_keys import editor
from rich.table import Table

from mercury_lsp import private_files
from mercury_lsp.daemon import control
from mercury_lsp.daemon.address import UnixAddress

HERE = Path(__file__).resolve().parent

RUNS = 7
"""Timed starts of each kind."""

KEYS = 400
"""Keys typed while memory is read, spread over the open files."""


def main() -> int:
    parser = options_of_all.parser("installation", __doc__)
    parser.add_argument("--quick", action="store_true", help="one start of each kind, 40 keys")
    parser.add_argument("--entry", default="now", help="the record's entry to write (default: now)")
    parser.add_argument("--environment", type=Path, help="an environment that has it installed (default: a fresh one)")
    parser.add_argument("--constraints", type=Path, help="versions to install")
    options_of_all.add_corpus(parser)
    options = parser.parse_args()
    try:
        found = entries(options.out) | {options.entry: measured(options)}
        suite.deliver(found, table(found), options)
    except MercuryError as error:
        parser.exit(1, f"{error}\n")
    return 0


def entries(path: Path) -> dict[str, Any]:
    """The entries that a record already has."""
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """One entry."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = sizes.built_wheel(HERE.parent, folder / "wheel")
        environment = options.environment or sizes.fresh_environment(folder / "env", wheel, options.constraints)
        wheel_mb = sizes.megabytes(wheel.stat().st_size)
        with only_that_environment(folder):
            return {
                "wheel_mb": wheel_mb,
                **sizes.installed(environment),
                "seconds_to_first_suggestion": starts(environment, folder, 1 if options.quick else RUNS),
                "while_typing_mb": memory_typing(environment, folder, options, 40 if options.quick else KEYS),
                **options_of_all.circumstances(),
            }


@contextmanager
def only_that_environment(state: Path) -> Iterator[None]:
    """Processes started meanwhile see no other Python path, nor the user's files."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("PYTHON")]:
        del os.environ[name]
    os.environ["XDG_STATE_HOME"] = os.environ["XDG_CACHE_HOME"] = str(state)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def starts(environment: Path, root: Path, runs: int) -> dict[str, list[float]]:
    """Seconds to the first suggestion in each run, fastest first, by kind of start."""
    alone = (str(environment / "bin" / "mercury-lsp"), "--in-process")
    address = UnixAddress(root / "start.sock")

    def shared() -> float:
        control.stop(address)
        return start.seconds_to_suggestion((alone[0], *address.arguments), root)

    found = {}
    for cache in ("warm", "cold") if start.can_drop_caches() else ("warm",):
        is_cold = cache == "cold"
        ways = {"alone": lambda: start.seconds_to_suggestion(alone, root), "shared": shared}
        for way, begin in ways.items():
            if not is_cold:
                begin()  # writes the bytecode and fills the page cache
            found[f"{way}_{cache}"] = start.fastest(begin, runs, is_cold)
    control.stop(address)
    return found


def memory_typing(environment: Path, root: Path, options: argparse.Namespace, keys: int) -> dict[str, dict[str, float]]:
    """Resident and proportional memory of each process, after typing in one file and in twenty."""
    program = str(environment / "bin" / "mercury-lsp")
    address = UnixAddress(root / "memory.sock")

    def alone(client: Client) -> dict[str, int]:
        return {"server": client._process.pid}

    def shared(client: Client) -> dict[str, int]:
        daemon, _ = private_files.signature(control.lock_path(address))
        assert daemon is not None
        return {"server": daemon, "relay": client._process.pid}

    ways = {"alone": ((program, "--in-process"), alone), "shared": ((program, *address.arguments), shared)}
    found = {}
    for way, (command, processes) in ways.items():
        with Client(command) as client:
            levels = list(levels_mb(client, processes, root, options.corpus, keys))
        found[way] = {"one_file": levels[0], "twenty_files": levels[1], "at_rest": levels[2]}
    control.stop(address)
    return found


def levels_mb(client: Client, processes: Any, root: Path, corpus: Path, keys: int) -> Iterator[dict[str, float]]:
    """Memory of a client's processes after it typed in one file, after it typed in all, and at rest."""
    start.introduce(client, root)
    typist = editor.Typist(client, root / "unused")
    each = keys // memory.OPEN_FILES
    scripts = memory.opened(typist, root, corpus, each, 1)
    list(memory.typed(typist, scripts, each))
    yield processes_mb(processes(client))
    scripts = memory.opened(typist, root, corpus, each)
    list(memory.typed(typist, scripts, each))
    yield processes_mb(processes(client))
    time.sleep(memory.REST_SECONDS)
    yield processes_mb(processes(client))


def processes_mb(pids: dict[str, int]) -> dict[str, float]:
    """Resident and proportional memory of each process in MiB, by name."""
    resident = {f"{name}_rss": round(editor.resident_mb(pid) or 0.0, 1) for name, pid in pids.items()}
    return resident | {f"{name}_pss": round(shared_mb(pid), 1) for name, pid in pids.items()}


def table(found: dict[str, Any]) -> Table:
    """The entries side by side."""
    made = Table("what", *found)

    def row(name: str, *path: str) -> None:
        made.add_row(name, *(_shown(entry, path) for entry in found.values()))

    row("wheel, MB", "wheel_mb")
    row("installed, MB", "installed_mb")
    for kind in ("alone_warm", "shared_warm", "alone_cold", "shared_cold"):
        row(f"first suggestion, {kind.replace('_', ', ')} (s)", "seconds_to_first_suggestion", kind)
    for way in ("alone", "shared"):
        for when in ("one_file", "twenty_files", "at_rest"):
            row(f"server, {way}, {when.replace('_', ' ')} (MiB)", "while_typing_mb", way, when, "server_rss")
    return made


def _shown(entry: Any, path: Sequence[str]) -> str:
    """The figure at a path of an entry; the fastest of several; "-" if it was not measured."""
    for name in path:
        entry = entry.get(name, {})
    return str((entry[0] if isinstance(entry, list) else entry) or "-")


if __name__ == "__main__":
    sys.exit(main())
