"""Measure the exact match of fills: `python -m mercury_lab.evaluation infill [--json] [--corpus DIR] [--limit N]`.

It cuts gaps of four kinds out of held-out files: the rest of a line, a whole line, two to five lines, and a random
span within a line. The same run fills the same gaps in other ways: those of one line with the reader alone decoding
left to right, and by copying only. Every text is cut where it repeats the text after the gap, and is right if it equals
the author's except for trailing blanks. Of a masked model with full attention, which cannot decode left to right, it
compares fills over keys and values that were read a few characters ago with exact ones.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mercury_engine.api import Fill
from mercury_engine.decoding.diffusion.decoder import DiffusionDecoder
from mercury_engine.decoding.diffusion.layouts import TwoSided
from rich.table import Column, Table

from mercury_lab.evaluation import suite
from mercury_lab.evaluation.baselines import GapFiller, copying, mercury_filler, reader_filler, typing_filler
from mercury_lab.evaluation.gaps import GAP_KINDS, Gap, gaps
from mercury_lab.evaluation.judge import exact, fitted

MERCURY, READER, COPY, STALE = "mercury", "left_to_right", "copy", "stale"


@dataclass(frozen=True, slots=True)
class Answers:
    """One gap, and by the name of each filler its fill and whether the fill was right."""

    gap: Gap
    fills: dict[str, Fill]
    right: dict[str, bool]


def answer_every_way(gap: Gap, ways: dict[str, GapFiller]) -> Answers:
    """Fill one gap with every filler."""
    fills = {name: fill(gap) for name, fill in ways.items() if name != READER or not gap.request.multiline}
    right = {name: exact(fitted(fill.text, gap.request), gap.truth) for name, fill in fills.items()}
    return Answers(gap, fills, right)


def figures(answers: Sequence[Answers]) -> suite.SuiteRecord:
    """The figures for gaps of a kind: shares between 0 and 1, milliseconds for the whole fill; None: not run."""
    found: suite.SuiteRecord = {"count": len(answers)}
    for way, prefix in {MERCURY: "", READER: "left_to_right_", COPY: "copy_", STALE: "stale_"}.items():
        is_run = way in answers[0].fills
        fills = [each.fills[way] for each in answers] if is_run else []
        found[f"{prefix}exact_match"] = statistics.fmean(each.right[way] for each in answers) if is_run else None
        found[f"{prefix}steps_mean"] = statistics.fmean(fill.steps for fill in fills) if is_run else None
        found[f"{prefix}ms_p50"] = 1e3 * statistics.median(fill.elapsed for fill in fills) if is_run else None
    pairs = [(each.fills[STALE].text, each.fills[MERCURY].text) for each in answers if STALE in each.fills]
    return found | {"stale_differs": statistics.fmean(a != b for a, b in pairs) if pairs else None}


def figures_by_kind(answers: Sequence[Answers], kinds: Sequence[str]) -> suite.SuiteRecord:
    """Figures by kind of span; kinds without gaps are omitted."""
    found = {kind: [each for each in answers if each.gap.kind == kind] for kind in kinds}
    return {kind: figures(own) for kind, own in found.items() if own}


def results_table(record: suite.SuiteRecord, kinds: Sequence[str]) -> Table:
    columns = ("exact match", "left to right", "copy", "stale", "stale differs", "steps", "ms p50", "count")
    table = Table(Column("span", no_wrap=True), *columns)
    for title, part in (("", record), (", Python", record["python"])):
        for kind in (k for k in kinds if k in part):
            row = part[kind]
            shares = [row[f"{name}exact_match"] for name in ("", "left_to_right_", "copy_", "stale_")]
            cells = (*map(suite.percent, (*shares, row["stale_differs"])), f"{row['steps_mean']:.1f}")
            table.add_row(kind + title, *cells, f"{row['ms_p50']:.0f}", str(row["count"]))
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
