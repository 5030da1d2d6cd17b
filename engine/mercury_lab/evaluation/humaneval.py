"""HumanEval-Infilling: `python -m mercury_lab.evaluation humaneval --data FILE [--model MODEL] [--true-length]`.

FILE is one of the published data sets, JSON lines or their .gz: single-line, multi-line or random-span infilling, or
HumanEval itself, whose tasks have no suffix (github.com/openai/human-eval-infilling). Each gap is filled once; the
program with the fill is run with the task's tests, and pass@1 is the share that passes, with its 95 % interval.
`--true-length` gives a masked diffusion model as many slots as the right text has tokens, as in published figures.

It runs what a model wrote: in a process of its own, in an empty folder, without the environment, with limits of time,
memory and file size, but with the network and your files in reach. Use a machine that may be lost.
"""

import argparse
import gzip
import json
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from mercury_engine.api import MAX_SLOTS, Fill, FillRequest
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.errors import RequestError
from rich.table import Table

from mercury_lab.engine import Engine
from mercury_lab.evaluation import suite
from mercury_lab.evaluation.judge import exact
from mercury_lab.intervals import wilson
from mercury_lab.training.window import window

SECONDS = 10
"""Time that a program may take; the longest of the published solutions takes a second."""

CANDIDATES = 3
"""Fills of a line that are tried, as when a user asks by key; of several lines others were never better."""

MOST_FILLS = 8
"""Fills of one gap, each of at most `MAX_SLOTS` tokens and after the one before."""

LIMITS = """
import resource as r
r.setrlimit(r.RLIMIT_CPU, ({seconds}, {seconds}))
r.setrlimit(r.RLIMIT_AS, (2 << 30, 2 << 30))
r.setrlimit(r.RLIMIT_FSIZE, (1 << 20, 1 << 20))
r.setrlimit(r.RLIMIT_CORE, (0, 0))
"""
"""What a program's process does first."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task of the published files; `suffix` is empty in HumanEval itself."""

    task_id: str
    prompt: str
    suffix: str
    canonical_solution: str
    test: str
    entry_point: str

    @property
    def is_whole_lines(self) -> bool:
        """Whether the gap begins and ends where lines do."""
        return self.prompt.endswith("\n") and bool(self.suffix) and not self.suffix.startswith("\n")

    def program(self, text: str) -> str:
        """The function with the text in its gap, and the tests."""
        if self.is_whole_lines and not text.endswith("\n"):
            text += "\n"
        return f"{self.prompt}{text}{self.suffix}\n{self.test}\ncheck({self.entry_point})\n"

    def request(self) -> FillRequest:
        """The gap, as an editor's server would ask for it; what follows a gap of whole lines is its line break."""
        text, start = self.prompt + "\n" * self.is_whole_lines + self.suffix, len(self.prompt)
        far, near, suffix = window(text, start, start)
        is_line = self.task_id.startswith("SingleLine")
        candidates = CANDIDATES if is_line else 1
        return FillRequest(
            near,
            tuple(far),
            tuple(suffix),
            multiline=not is_line,
            max_slots=MAX_SLOTS,
            effort="high",
            candidates=candidates,
        )


def tasks(path: Path) -> list[Task]:
    """The tasks of a data file. Raises RequestError, which says what is wrong with it."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines if line.strip()]
        fields = ("task_id", "prompt", "canonical_solution", "test", "entry_point")
        return [Task(suffix=row.get("suffix", ""), **{name: row[name] for name in fields}) for row in rows]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RequestError(
            f"{path} is not a HumanEval-Infilling file ({error!r}); fetch one of the .jsonl.gz files of "
            "github.com/openai/human-eval-infilling"
        ) from error


def passes(program: str, seconds: float = SECONDS) -> bool:
    """Whether a program ends without an error in time."""
    with TemporaryDirectory() as folder:
        source = LIMITS.format(seconds=max(1, round(seconds))) if os.name == "posix" else ""
        path = Path(folder, "program.py")
        path.write_text(f"{source}exec(compile({program!r}, 'program', 'exec'), {{'__name__': '__main__'}})\n", "utf-8")
        command, null = [sys.executable, "-I", "-X", "utf8", path.name], subprocess.DEVNULL
        running = subprocess.Popen(
            command, cwd=folder, env={}, stdin=null, stdout=null, stderr=null, start_new_session=True
        )
        try:
            return running.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            _end(running)


def _end(running: "subprocess.Popen[bytes]") -> None:
    """End a process and those that it started."""
    if os.name == "posix":
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
    running.kill()
    running.wait()


def fill(engine: Engine, request: FillRequest) -> tuple[str, Sequence[Fill]]:
    """The text for a gap, in several fills where one ends at its limit."""
    text, fills = "", list[Fill]()
    while len(fills) < MOST_FILLS:
        fills.append(engine.fill(replace(request, near=request.near + text)))
        text += fills[-1].text
        if fills[-1].is_finished or not fills[-1].text:
            break
    return text, fills


def slots_of(engine: Engine, task: Task) -> int:
    """The number of tokens of the right text, with the part of a word before it, within what a request may ask for."""
    begun = engine.decoder.contexts.cut(task.request()).spell
    right = task.canonical_solution.rstrip("\n") if task.is_whole_lines else task.canonical_solution
    return max(1, min(MAX_SLOTS, len(engine.tokenizer.encode(begun + right))))


def figures(engine: Engine, found: Sequence[Task], true_length: bool) -> suite.SuiteRecord:
    """Fill and run all tasks."""
    if true_length:
        options = engine.parts.options
        if not isinstance(options, DiffusionOptions):
            raise RequestError("--true-length is for masked diffusion models; leave it out")
        engine = engine.varied(replace(options, searches_length=False))
    rows = []
    for task in suite.progress(found, "humaneval"):
        request = task.request()
        text, fills = fill(engine, replace(request, max_slots=slots_of(engine, task)) if true_length else request)
        steps, seconds = sum(each.steps for each in fills), sum(each.elapsed for each in fills)
        rows.append((passes(task.program(text)), exact(text, task.canonical_solution), steps, seconds))
    passed, same, steps_of, seconds_of = zip(*rows, strict=True)
    return {
        "tasks": len(rows),
        "pass_at_1": statistics.fmean(passed),
        "interval": wilson(sum(passed), len(rows)),
        "exact_match": statistics.fmean(same),
        "steps_mean": statistics.fmean(steps_of),
        "ms_p50": 1e3 * statistics.median(seconds_of),
        "true_length": true_length,
        "failed": [task.task_id for task, row in zip(found, rows, strict=True) if not row[0]],
    }


def results_table(record: suite.SuiteRecord) -> Table:
    low, high = record["interval"]
    table = Table("tasks", "pass@1", "95 %", "exact match", "steps", "ms p50")
    shares = suite.percent(record["pass_at_1"]), f"{low:.1%} to {high:.1%}", suite.percent(record["exact_match"])
    table.add_row(str(record["tasks"]), *shares, f"{record['steps_mean']:.1f}", f"{record['ms_p50']:.0f}")
    return table


def main(argv: list[str]) -> int:
    parser = suite.parser("humaneval", __doc__, 10_000, "tasks from the start of the file")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", type=Path, required=True, help="a data file, .jsonl or .jsonl.gz")
    parser.add_argument("--true-length", action="store_true", help="give as many slots as the right text has tokens")
    options = parser.parse_args(argv)
    found = tasks(options.data)[: options.limit]
    if not found:
        raise RequestError(f"{options.data} has no tasks; fetch it again")
    engine = suite.load_engine(options)
    record = figures(engine, found, options.true_length) | suite.circumstances(engine, options)
    record |= {"corpus": options.data.name}
    suite.deliver(record, results_table(record), options)
    return 0
