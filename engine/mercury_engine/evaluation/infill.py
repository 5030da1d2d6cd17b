"""Exact match of fills: `python -m mercury_engine.evaluation infill [--json] [--corpus DIR] [--limit N]`.

The baseline is the reader alone: the same weights decoded greedily, one token after another, from the plain
text before the gap, read in one causal run. Both stop at the end of the line.
"""

import argparse
import json
import platform
import statistics
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from mercury_engine.denoise import Denoiser
from mercury_engine.engine import Engine
from mercury_engine.evaluation.gaps import KINDS, Gap, gaps
from mercury_engine.requests import Fill, FillRequest

PREFIX_CHARS = 3600
"""What the baseline reads: as much text as the fill gets on both sides together."""


@dataclass(frozen=True, slots=True)
class Row:
    """Figures for one kind of span; shares between 0 and 1, milliseconds of the whole fill."""

    exact_match: float
    left_to_right_exact_match: float
    steps_mean: float
    ms_p50: float
    left_to_right_steps_mean: float
    left_to_right_ms_p50: float
    count: int


def left_to_right(engine: Engine) -> Engine:
    """The same reader without a writer."""
    alone = Engine.__new__(Engine)
    alone.__dict__.update(engine.__dict__)
    alone.writer = None
    alone.denoiser = Denoiser(engine.reader, None, engine.codec, engine.denoiser.rule)
    return alone


def right(fill: Fill, gap: Gap) -> bool:
    """Equal up to blanks at the end of the line."""
    return fill.text.rstrip() == gap.truth.rstrip()


def measure(engine: Engine, cases: list[Gap], quiet: bool) -> tuple[Row, list[tuple[float, bool]]]:
    """Figures for the cases of one kind, and every fill's confidence with whether it was right."""
    alone = left_to_right(engine)
    fills, baseline = [], []
    for gap in track(cases, cases[0].kind, console=Console(stderr=True), disable=quiet):
        fills.append(engine.fill(replace(gap.request, effort="high")))
        baseline.append(alone.fill(FillRequest(near=gap.prefix[-PREFIX_CHARS:], effort="high")))
    hits = [right(fill, gap) for fill, gap in zip(fills, cases, strict=True)]
    row = Row(
        exact_match=statistics.mean(hits),
        left_to_right_exact_match=statistics.mean(right(f, g) for f, g in zip(baseline, cases, strict=True)),
        steps_mean=statistics.mean(f.steps for f in fills),
        ms_p50=1e3 * statistics.median(f.elapsed for f in fills),
        left_to_right_steps_mean=statistics.mean(f.steps for f in baseline),
        left_to_right_ms_p50=1e3 * statistics.median(f.elapsed for f in baseline),
        count=len(cases),
    )
    return row, [(f.confidence, hit) for f, hit in zip(fills, hits, strict=True)]


def gate_table(pairs: list[tuple[float, bool]]) -> list[dict[str, float]]:
    """Share shown and precision of what is shown, by gate."""
    rows = []
    for gate in (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
        shown = [hit for confidence, hit in pairs if confidence >= gate]
        rows.append({"gate": gate, "shown": len(shown) / len(pairs), "precision": statistics.mean(shown or [0])})
    return rows


def report(rows: dict[str, Row]) -> Table:
    table = Table("span", "exact match", "left to right", "steps", "ms p50", "left to right ms", "count")
    for kind, row in rows.items():
        table.add_row(
            kind,
            f"{row.exact_match:.1%}",
            f"{row.left_to_right_exact_match:.1%}",
            f"{row.steps_mean:.1f}",
            f"{row.ms_p50:.0f}",
            f"{row.left_to_right_ms_p50:.0f}",
            str(row.count),
        )
    return table


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mercury_engine.evaluation infill", description=__doc__)
    parser.add_argument("--model", help="a folder or a name; the bundled model by default")
    parser.add_argument("--corpus", type=Path, default=Path("tests/data/held_out"), help="a folder of source files")
    parser.add_argument("--limit", type=int, default=100, help="gaps of every kind")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    engine = Engine.load(options.model, threads=options.threads)
    cases = list(gaps(options.corpus, options.limit, options.seed, tuple(options.kinds)))
    rows: dict[str, Row] = {}
    pairs: list[tuple[float, bool]] = []
    for kind in options.kinds:
        rows[kind], found = measure(engine, [gap for gap in cases if gap.kind == kind], quiet=options.json)
        pairs += found
    if options.json:
        machine = {"machine": platform.processor() or platform.machine(), "device": engine.device}
        whole = {kind: asdict(row) for kind, row in rows.items()} | {"gates": gate_table(pairs)}
        json.dump(whole | {"model": engine.name, "seed": options.seed} | machine, sys.stdout, indent=2)
        print()
    else:
        Console().print(report(rows))
    return 0
