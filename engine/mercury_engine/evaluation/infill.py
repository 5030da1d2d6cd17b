"""Exact match of fills: `python -m mercury_engine.evaluation infill [--json] [--corpus DIR] [--limit N]`.

Gaps of four kinds are cut out of held-out files: the rest of a line, a whole line, two to five lines, a random span
within a line. In the same run, the same gaps: the fill after few steps, the reader alone decoding left to right,
nothing but copying, and with `--peer DIR` Qwen2.5-Coder in its own fill-in-the-middle format. All texts are cut
where they repeat what stands behind the gap, and equal the author's up to blanks at the end when they count.
"""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Column, Table

from mercury_engine.api import Fill
from mercury_engine.evaluation import suite
from mercury_engine.evaluation.baselines import Fills, copy, left_to_right, mercury, reader
from mercury_engine.evaluation.confidence import gate_table
from mercury_engine.evaluation.fim import FillInTheMiddle, at_hand
from mercury_engine.evaluation.gaps import KINDS, Gap, gaps
from mercury_engine.evaluation.judge import exact, fitted

__all__ = ["Answers", "Row", "answer", "left_to_right", "main", "row"]

STEPS = (1, 2, 4, 8)

MERCURY, READER, COPY, PEER = "mercury", "left_to_right", "copy", "peer"


@dataclass(frozen=True, slots=True)
class Row:
    """Figures for one kind of span; shares between 0 and 1, milliseconds of the whole fill; None: not run."""

    exact_match: float
    left_to_right_exact_match: float
    copy_exact_match: float
    peer_exact_match: float | None
    by_steps: dict[str, float]
    """Exact match when the fill ends after so many steps; "free" without a limit."""
    steps_mean: float
    left_to_right_steps_mean: float
    peer_steps_mean: float | None
    ms_p50: float
    left_to_right_ms_p50: float
    copy_ms_p50: float
    peer_ms_p50: float | None
    count: int


@dataclass(frozen=True, slots=True)
class Answers:
    """One gap, and by the name of every way to fill it the fill and whether it was right."""

    gap: Gap
    fills: dict[str, Fill]
    right: dict[str, bool]


def answer(gap: Gap, ways: dict[str, Fills]) -> Answers:
    """Fill one gap in every way."""
    fills = {name: fill(gap) for name, fill in ways.items()}
    right = {name: exact(fitted(fill.text, gap.request), gap.truth) for name, fill in fills.items()}
    return Answers(gap, fills, right)


def row(answers: Sequence[Answers]) -> Row | None:
    """The figures of some gaps; None for none."""
    if not answers:
        return None
    names = answers[0].fills
    exact_match = {name: statistics.fmean(a.right[name] for a in answers) for name in names}
    steps = {name: statistics.fmean(a.fills[name].steps for a in answers) for name in names}
    ms = {name: 1e3 * statistics.median(a.fills[name].elapsed for a in answers) for name in names}
    return Row(
        exact_match=exact_match[MERCURY],
        left_to_right_exact_match=exact_match[READER],
        copy_exact_match=exact_match[COPY],
        peer_exact_match=exact_match.get(PEER),
        by_steps={name: exact_match[name] for name in names if name.isdecimal()} | {"free": exact_match[MERCURY]},
        steps_mean=steps[MERCURY],
        left_to_right_steps_mean=steps[READER],
        peer_steps_mean=steps.get(PEER),
        ms_p50=ms[MERCURY],
        left_to_right_ms_p50=ms[READER],
        copy_ms_p50=ms[COPY],
        peer_ms_p50=ms.get(PEER),
        count=len(answers),
    )


def rows(answers: Sequence[Answers], kinds: Sequence[str]) -> suite.SuiteRecord:
    """Figures by kind of span; kinds without gaps are left out."""
    found = {kind: row([a for a in answers if a.gap.kind == kind]) for kind in kinds}
    return {kind: asdict(figures) for kind, figures in found.items() if figures}


def report(record: suite.SuiteRecord, kinds: Sequence[str]) -> Table:
    table = Table(
        Column("span", no_wrap=True),
        "exact match",
        "left to right",
        "copy",
        "peer",
        "steps",
        "ms p50",
        "peer ms",
        "count",
    )
    for title, part in (("", record), (", Python", record["python"])):
        for kind in (k for k in kinds if k in part):
            figures = part[kind]
            shares = [figures[f"{name}exact_match"] for name in ("", "left_to_right_", "copy_", "peer_")]
            peer = figures["peer_ms_p50"]
            table.add_row(
                kind + title,
                *map(suite.share, shares),
                f"{figures['steps_mean']:.1f}",
                f"{figures['ms_p50']:.0f}",
                "-" if peer is None else f"{peer:.0f}",
                str(figures["count"]),
            )
    return table


def draw(record: suite.SuiteRecord, folder: Path) -> None:
    from mercury_engine.evaluation import plots

    kinds = {kind: record[kind]["by_steps"] for kind in KINDS if kind in record}
    plots.quality_against_steps(kinds, folder / "infill-steps.png")
    plots.precision_against_shown({record["model"]: record["gates"]}, folder / "infill-precision.png")


def main(argv: list[str]) -> int:
    parser = suite.parser("infill", __doc__, 100, "gaps of every kind")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--steps", nargs="*", type=int, default=STEPS, help="limits of steps that are tried as well")
    parser.add_argument("--peer", type=Path, help="folder of Qwen2.5-Coder-0.5B, written by the base step")
    options = parser.parse_args(argv)
    cases = list(gaps(options.corpus, options.limit, options.seed, tuple(options.kinds)))
    engine = suite.load(options)
    ways: dict[str, Fills] = {MERCURY: mercury(engine), READER: reader(engine), COPY: copy}
    ways |= {str(limit): mercury(engine, limit) for limit in options.steps}
    peer = FillInTheMiddle(suite.load(options, options.peer)) if at_hand(options.peer) else None
    if peer:
        ways[PEER] = peer
    answers = [answer(gap, ways) for gap in suite.progress(cases, "infill")]
    record = rows(answers, options.kinds) | {
        "python": rows([a for a in answers if a.gap.language == "python"], options.kinds),
        "gates": gate_table([(a.fills[MERCURY].confidence, a.right[MERCURY]) for a in answers], len(answers)),
        "peer": peer.name if peer else None,
        **suite.circumstances(engine, options),
    }
    suite.deliver(record, report(record, options.kinds), options, draw)
    return 0
