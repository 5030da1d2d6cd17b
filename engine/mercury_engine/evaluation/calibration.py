"""Calibrate: `python -m mercury_engine.evaluation calibration [--json] [--corpus DIR] [--fit DIR] [--write]`.

It requests rests of lines as the server does, at every silence gate in turn: a gate makes the engine give up early and
show only the part it is surer of, so a higher gate shows different texts, not merely fewer. It reports precision and
share shown by gate, and how well a confidence predicts the share of suggestions in which nothing is wrong.

A logistic curve from confidence to that share, and the lowest gate with the wanted precision, are fitted on different
files from those reported: the files of `--fit DIR` that are not in the corpus, or every second repository of the
corpus. `--write` stores both in the model's settings.json: `calibration` as [confidence, share] pairs for
interpolation, `gate` as a confidence before calibration.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.table import Table

from mercury_engine.denoising.calibration import Calibration
from mercury_engine.errors import RequestError
from mercury_engine.evaluation import confidence, suite
from mercury_engine.evaluation.baselines import GapFiller, mercury_filler
from mercury_engine.evaluation.confidence import GATES, ScoredFill
from mercury_engine.evaluation.gaps import Gap, HeldOutFile, gap_at, held_out_files, sample_places
from mercury_engine.evaluation.judge import fitted, keeps


@dataclass(frozen=True, slots=True)
class Ladder:
    """The suggestions for one gap, from the lowest gate to the highest that shows any."""

    pairs: tuple[ScoredFill, ...]
    """One for each distinct suggestion."""
    by_gate: tuple[bool | None, ...]
    """For every gate, whether its suggestion has nothing wrong; None where it shows none."""


def ask_at_every_gate(fill: GapFiller, gap: Gap, gates: Sequence[float] = GATES) -> Ladder:
    """Request a fill at every gate; a suggestion surer than the next gate is also that gate's suggestion."""
    pairs: list[ScoredFill] = []
    by_gate: list[bool | None] = []
    sure, right = -1.0, None
    for gate in gates:
        if sure < gate and (right is not None or not by_gate):
            answer = fill(replace(gap, request=replace(gap.request, give_up_below=gate)))
            text = fitted(answer.text, gap.request).rstrip()
            sure, right = answer.confidence, keeps(text, gap.truth) if text and answer.confidence >= gate else None
            if right is not None:
                pairs.append((sure, right))
        by_gate.append(right)
    return Ladder(tuple(pairs), tuple(by_gate))


def ladders(fill: GapFiller, found: Sequence[HeldOutFile], limit: int, seed: int, what: str) -> list[Ladder]:
    """The suggestions for `limit` gaps at random cursors."""
    gaps = [gap_at(*place, "rest_of_line") for place in sample_places(found, limit, seed, "rest_of_line")]
    return [ask_at_every_gate(fill, gap) for gap in suite.progress(gaps, what)]


def split_by_repository(found: Sequence[HeldOutFile]) -> tuple[list[HeldOutFile], list[HeldOutFile]]:
    """Files to fit on and files to report on: alternate repositories, or alternate files of a single repository."""
    names = sorted({d.repository for d in found})
    if len(names) < 2:
        return list(found[::2]), list(found[1::2])
    fitting = set(names[::2])
    return [d for d in found if d.repository in fitting], [d for d in found if d.repository not in fitting]


def fitting_and_reported_files(corpus: Path, fit: Path | None) -> tuple[list[HeldOutFile], list[HeldOutFile]]:
    """Files to fit on and different files to report on; raises RequestError when there is one file only."""
    found = held_out_files(corpus)
    fitting, reported = (held_out_files(fit, {d.text for d in found}), found) if fit else split_by_repository(found)
    if not fitting or not reported:
        raise RequestError(f"{corpus} has one source file only; name other files to fit on with --fit")
    return fitting, reported


def gate_rows(found: Sequence[Ladder]) -> list[dict[str, float | None]]:
    """Share shown and precision at every gate."""
    columns = zip(*(ladder.by_gate for ladder in found), strict=True)
    shown = [[right for right in column if right is not None] for column in columns]
    return [confidence.gate_row(gate, hits, len(found)) for gate, hits in zip(GATES, shown, strict=True)]


def gate_for(precision: float, rows: Sequence[dict[str, float | None]]) -> float:
    """The lowest gate with at least that precision; if none has it, the gate with the best precision."""
    known = [row for row in rows if row["precision"] is not None]
    fitting = [row for row in known if (row["precision"] or 0.0) >= precision]
    if not known:
        raise RequestError("no suggestion was shown at any gate; ask for more gaps with --limit")
    best = fitting[0] if fitting else max(known, key=lambda row: row["precision"] or 0.0)
    return float(best["gate"] or 0.0)


def figures(fitting: Sequence[Ladder], reported: Sequence[Ladder], precision: float) -> suite.SuiteRecord:
    """The curve and the gate fitted on one half, and their figures on the other."""
    curve = confidence.calibration_knots(*confidence.fit_logistic(_pairs(fitting)))
    gate, raw = gate_for(precision, gate_rows(fitting)), _pairs(reported)
    calibrated = [(Calibration(curve).kept(sure), right) for sure, right in raw]
    rows = gate_rows(reported)
    return {
        "calibration_error": confidence.calibration_error(raw),
        "calibration_error_after_fit": confidence.calibration_error(calibrated),
        "reliability": confidence.reliability(raw),
        "reliability_after_fit": confidence.reliability(calibrated),
        "gates": rows,
        "gate": gate,
        "wanted_precision": precision,
        "at_gate": next(row for row in rows if row["gate"] == gate),
        "calibration": curve,
        "count": len(reported),
        "suggestions": len(raw),
        "fitted_on": len(fitting),
    }


def _pairs(found: Sequence[Ladder]) -> list[ScoredFill]:
    return [pair for ladder in found for pair in ladder.pairs]


def results_table(record: suite.SuiteRecord) -> Table:
    before, after = record["calibration_error"], record["calibration_error_after_fit"]
    title = f"calibration error {before:.3f}, after the fit {after:.3f}"
    table = Table("gate", "shown", "precision", title=title)
    for row in record["gates"]:
        chosen = "  <- fitted" if row["gate"] == record["gate"] else ""
        table.add_row(f"{row['gate']:g}{chosen}", suite.percent(row["shown"]), suite.percent(row["precision"]))
    return table


def plot(record: suite.SuiteRecord, folder: Path) -> None:
    from mercury_engine.evaluation import plots

    curves = {"as the engine says": record["reliability"], "after the fit": record["reliability_after_fit"]}
    plots.reliability(curves, folder / "calibration-reliability.png")
    plots.precision_against_shown({record["model"]: record["gates"]}, folder / "calibration-precision.png")


def main(argv: list[str]) -> int:
    parser = suite.parser("calibration", __doc__, 120, "gaps to fit on, and as many to report on")
    parser.add_argument("--fit", type=Path, help="a folder of different source files to fit on")
    parser.add_argument(
        "--precision", type=float, default=0.6, help="wanted precision of shown suggestions (default 0.6)"
    )
    parser.add_argument("--write", action="store_true", help="store the fit in the model's settings.json")
    options = parser.parse_args(argv)
    fitting, reported = fitting_and_reported_files(options.corpus, options.fit)
    engine = suite.load_engine(options)
    engine.calibration = Calibration()  # a new fit does not build on an earlier one
    fill = mercury_filler(engine)
    fitted_on = ladders(fill, fitting, options.limit, options.seed, "to fit on")
    reported_on = ladders(fill, reported, options.limit, options.seed, "to report")
    record = figures(fitted_on, reported_on, options.precision) | suite.circumstances(engine, options)
    if options.write:
        suite.store_settings(engine.path, calibration=record["calibration"], gate=record["gate"])
    suite.deliver(record, results_table(record), options, plot)
    return 0
