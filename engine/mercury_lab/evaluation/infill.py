"""Measure the exact match of fills: `python -m mercury_lab.evaluation infill [--json] [--corpus DIR] [--limit N]`.

It cuts gaps of four kinds out of held-out files: the rest of a line, a whole line, two to five lines, and a random
span within a line. The same run fills the same gaps in other ways: with the reader alone decoding left to right, and by
copying only. Every text is cut where it repeats the text after the gap, and is right if it equals the author's except
for trailing blanks. Of a masked model with full attention, which cannot decode left to right, it compares fills over
keys and values that were read a few characters ago with exact ones.
"""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from mercury_engine.api import Fill
from mercury_engine.decoding.diffusion.decoder import DiffusionDecoder
from mercury_engine.decoding.diffusion.layouts import TwoSided
from rich.table import Column, Table

from mercury_lab.evaluation import suite
from mercury_lab.evaluation.baselines import (
    GapFiller,
    copying,
    mercury_filler,
    reader_filler,
    typing_filler,
)
from mercury_lab.evaluation.gaps import GAP_KINDS, Gap, gaps
from mercury_lab.evaluation.judge import exact, fitted

MERCURY, READER, COPY, STALE = "mercury", "left_to_right", "copy", "stale"


@dataclass(frozen=True, slots=True)
class InfillFigures:
    """Figures for one kind of span: shares between 0 and 1, milliseconds for the whole fill; None: not run."""

    exact_match: float
    left_to_right_exact_match: float | None
    copy_exact_match: float
    stale_exact_match: float | None
    stale_differs: float | None
    """Share of gaps whose text over stale keys and values is another than the exact one."""
    steps_mean: float
    left_to_right_steps_mean: float | None
    ms_p50: float
    left_to_right_ms_p50: float | None
    copy_ms_p50: float
    count: int


@dataclass(frozen=True, slots=True)
class Answers:
    """One gap, and by the name of each filler its fill and whether the fill was right."""

    gap: Gap
    fills: dict[str, Fill]
    right: dict[str, bool]


def answer_every_way(gap: Gap, ways: dict[str, GapFiller]) -> Answers:
    """Fill one gap with every filler."""
    fills = {name: fill(gap) for name, fill in ways.items()}
    right = {name: exact(fitted(fill.text, gap.request), gap.truth) for name, fill in fills.items()}
    return Answers(gap, fills, right)


def figures_of(answers: Sequence[Answers]) -> InfillFigures | None:
    """The figures for some gaps; None if there are none."""
    if not answers:
        return None
    names = answers[0].fills
    exact_match = {name: statistics.fmean(a.right[name] for a in answers) for name in names}
    steps = {name: statistics.fmean(a.fills[name].steps for a in answers) for name in names}
    ms = {name: 1e3 * statistics.median(a.fills[name].elapsed for a in answers) for name in names}
    return InfillFigures(
        exact_match=exact_match[MERCURY],
        left_to_right_exact_match=exact_match.get(READER),
        copy_exact_match=exact_match[COPY],
        stale_exact_match=exact_match.get(STALE),
        stale_differs=_differing(answers) if STALE in names else None,
        steps_mean=steps[MERCURY],
        left_to_right_steps_mean=steps.get(READER),
        ms_p50=ms[MERCURY],
        left_to_right_ms_p50=ms.get(READER),
        copy_ms_p50=ms[COPY],
        count=len(answers),
    )


def _differing(answers: Sequence[Answers]) -> float:
    return statistics.fmean(each.fills[STALE].text != each.fills[MERCURY].text for each in answers)


def figures_by_kind(answers: Sequence[Answers], kinds: Sequence[str]) -> suite.SuiteRecord:
    """Figures by kind of span; kinds without gaps are omitted."""
    found = {kind: figures_of([a for a in answers if a.gap.kind == kind]) for kind in kinds}
    return {kind: asdict(figures) for kind, figures in found.items() if figures}


def results_table(record: suite.SuiteRecord, kinds: Sequence[str]) -> Table:
    table = Table(
        Column("span", no_wrap=True),
        "exact match",
        "left to right",
        "copy",
        "stale",
        "stale differs",
        "steps",
        "ms p50",
        "count",
    )
    for title, part in (("", record), (", Python", record["python"])):
        for kind in (k for k in kinds if k in part):
            figures = part[kind]
            shares = [figures[f"{name}exact_match"] for name in ("", "left_to_right_", "copy_", "stale_")]
            table.add_row(
                kind + title,
                *map(suite.percent, shares),
                suite.percent(figures["stale_differs"]),
                f"{figures['steps_mean']:.1f}",
                f"{figures['ms_p50']:.0f}",
                str(figures["count"]),
            )
    return table


def main(argv: list[str]) -> int:
    parser = suite.parser("infill", __doc__, 100, "gaps of every kind")
    parser.add_argument("--kinds", nargs="+", choices=GAP_KINDS, default=list(GAP_KINDS))
    options = parser.parse_args(argv)
    cases = list(gaps(options.corpus, options.limit, options.seed, tuple(options.kinds)))
    engine = suite.load_engine(options)
    ways: dict[str, GapFiller] = {MERCURY: mercury_filler(engine), COPY: copying}
    if isinstance(engine.decoder, DiffusionDecoder) and isinstance(engine.decoder.layout, TwoSided):
        ways[STALE], engine = typing_filler(engine), engine.varied(replace(engine.decoder.options, exact=True))
        ways[MERCURY] = mercury_filler(engine)
    elif engine.reader.config.masked_attention is None:
        ways[READER] = reader_filler(engine)
    answers = [answer_every_way(gap, ways) for gap in suite.progress(cases, "infill")]
    record = figures_by_kind(answers, options.kinds) | {
        "python": figures_by_kind([a for a in answers if a.gap.language == "python"], options.kinds),
        **suite.circumstances(engine, options),
    }
    suite.deliver(record, results_table(record, options.kinds), options)
    return 0
