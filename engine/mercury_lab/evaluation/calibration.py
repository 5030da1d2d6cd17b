"""Calibrate: `python -m mercury_lab.evaluation calibration [--json] [--corpus DIR] [--fit DIR] [--write]`.

It fills gaps at random cursors, once each, and looks at every beginning of the fill: how sure the model was of it,
whether it is right, and what of it a perfect user would take. On different files from those reported - the files of
`--fit DIR` that are not in the corpus, or every second repository of the corpus - it fits

- a logistic curve from the confidence to the share that is right, and
- `Utility`: what reading a wrong text costs, and the least utility of a text that is shown. Of all pairs with which at
  most `--wrong` of what is shown is wrong and at most `--stubs` are stubs, it takes the one that saves most characters.

`--write` stores both in the model's settings.json.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

from mercury_engine.api import Control, FillRequest
from mercury_engine.decoding.options import Calibration
from mercury_engine.decoding.results import Cut, Cutter
from mercury_engine.errors import RequestError
from mercury_engine.utility import Utility
from rich.table import Table

from mercury_lab.engine import Engine, finished
from mercury_lab.evaluation import confidence, suite
from mercury_lab.evaluation.confidence import ScoredFill
from mercury_lab.evaluation.gaps import Gap, HeldOutFile, gap_at, held_out_files, sample_places
from mercury_lab.evaluation.judge import accepted, fitted, is_stub, keeps

LEAST_CONFIDENCE = 0.03
"""Confidence at which a fill stops; its later beginnings are never worth showing."""

WRONG_COSTS = (2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 30.0)
LEASTS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""Costs and least worths that are tried, in characters."""

MIN_PROBABILITIES = (0.0, 0.5, 0.6, 0.7, 0.8)
"""Least probabilities that are tried with each of them."""


@dataclass(frozen=True, slots=True)
class JudgedCut:
    """A beginning of a fill, and what it is worth to a perfect user."""

    cut: Cut
    is_right: bool
    is_stub: bool
    saved: int


@dataclass(frozen=True, slots=True)
class JudgedGap:
    """The beginnings of one gap's fill, the shortest first."""

    cuts: tuple[JudgedCut, ...]
    length: int
    """Characters of the author's text."""

    def shown(self, utility: Utility, curve: Calibration) -> JudgedCut | None:
        """The beginning that is worth most, if that is enough."""
        sure = [(curve.kept(c.cut.confidence), c) for c in self.cuts]
        enough = [(p, c) for p, c in sure if p >= utility.min_probability]
        valued = [(utility.of(p, c.cut.text, c.cut.is_finished), c) for p, c in enough]
        most, best = max(valued, key=lambda pair: pair[0], default=(0.0, None))
        return best if most >= utility.least else None


def judged(cuts: Sequence[Cut], gap: Gap) -> JudgedGap:
    """Compare the beginnings of a fill with what the author wrote."""
    found = []
    for cut in cuts:
        text = fitted(cut.text, gap.request).rstrip()
        right = bool(text) and keeps(text, gap.truth)
        stub = right and is_stub(text, gap.truth)
        if text:
            found.append(JudgedCut(replace(cut, text=text), right, stub, len(accepted(text, gap.truth))))
    return JudgedGap(tuple(found), len(gap.truth))


def ask(engine: Engine, found: Sequence[HeldOutFile], limit: int, seed: int, what: str) -> list[JudgedGap]:
    """The judged fills of `limit` gaps at random cursors."""
    gaps = [gap_at(*place, "rest_of_line") for place in sample_places(found, limit, seed, "rest_of_line")]
    requests = ((gap, replace(gap.request, give_up_below=LEAST_CONFIDENCE)) for gap in suite.progress(gaps, what))
    return [judged(beginnings(engine, request), gap) for gap, request in requests]


def beginnings(engine: Engine, request: FillRequest) -> list[Cut]:
    """Every beginning of a fill that might be shown, the shortest first."""
    [hypothesis, *_], context = finished(engine.decoder.write(request, Control()), engine.reader)
    if context is None:
        return []
    ends = range(hypothesis.known + 1, len(hypothesis.probabilities) + 1)
    return [*map(Cutter(hypothesis).after, ends)]


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


def figures_at(found: Sequence[JudgedGap], utility: Utility, curve: Calibration) -> suite.SuiteRecord:
    """What is shown with one cost and bound: shares of the gaps, of what is shown, and of the characters."""
    shown = [best for gap in found if (best := gap.shown(utility, curve))]
    count, characters = max(1, len(shown)), max(1, sum(gap.length for gap in found))
    return asdict(utility) | {
        "gate": utility.least,
        "shown": len(shown) / max(1, len(found)),
        "precision": sum(each.is_right for each in shown) / count if shown else None,
        "stubs": sum(each.is_stub for each in shown) / count,
        "saved": sum(each.saved for each in shown) / characters,
    }


def fit_utility(found: Sequence[JudgedGap], curve: Calibration, wrong: float, stubs: float) -> Utility:
    """The cost and bounds that save most within the limits; if none keeps them, the ones with the best precision.

    Where nothing is worth showing with any of them, the default. Raises RequestError if there was nothing to judge.
    """
    tried = [Utility(*values) for values in product(WRONG_COSTS, LEASTS, MIN_PROBABILITIES)]
    rows = [(figures_at(found, utility, curve), utility) for utility in tried]
    some = [(row, utility) for row, utility in rows if row["precision"] is not None]
    if not any(gap.cuts for gap in found):
        raise RequestError("the model wrote nothing at any gap; ask for more gaps with --limit")
    if not some:
        return Utility()
    within = [(row, utility) for row, utility in some if 1 - row["precision"] <= wrong and row["stubs"] <= stubs]
    if within:
        return max(within, key=lambda pair: pair[0]["saved"])[1]
    return max(some, key=lambda pair: pair[0]["precision"])[1]


def figures(
    fitting: Sequence[JudgedGap], reported: Sequence[JudgedGap], wrong: float, stubs: float
) -> suite.SuiteRecord:
    """The curve and the utility fitted on one part, and their figures on the other."""
    knots = confidence.calibration_knots(*confidence.fit_logistic(_pairs(fitting)))
    curve, raw = Calibration(knots), _pairs(reported)
    utility = fit_utility(fitting, curve, wrong, stubs)
    calibrated = [(curve.kept(sure), right) for sure, right in raw]
    return {
        "calibration_error": confidence.calibration_error(raw),
        "calibration_error_after_fit": confidence.calibration_error(calibrated),
        "reliability": confidence.reliability(raw),
        "reliability_after_fit": confidence.reliability(calibrated),
        "utility": asdict(utility),
        "wanted": {"wrong": wrong, "stubs": stubs},
        "at_utility": figures_at(reported, utility, curve),
        "gates": [figures_at(reported, replace(utility, least=least), curve) for least in LEASTS],
        "calibration": knots,
        "count": len(reported),
        "suggestions": len(raw),
        "fitted_on": len(fitting),
    }


def _pairs(found: Sequence[JudgedGap]) -> list[ScoredFill]:
    return [(each.cut.confidence, each.is_right) for gap in found for each in gap.cuts]


def results_table(record: suite.SuiteRecord) -> Table:
    before, after, utility = record["calibration_error"], record["calibration_error_after_fit"], record["utility"]
    title = f"calibration error {before:.3f}, after the fit {after:.3f}; a wrong text costs {utility['wrong_cost']:g}"
    table = Table("least utility", "shown", "precision", "stubs", "characters saved", title=title)
    for row in record["gates"]:
        chosen = "  <- fitted" if row["least"] == utility["least"] else ""
        shares = (suite.percent(row[key]) for key in ("shown", "precision", "stubs", "saved"))
        table.add_row(f"{row['least']:g}{chosen}", *shares)
    return table


def main(argv: list[str]) -> int:
    parser = suite.parser("calibration", __doc__, 400, "gaps to fit on, and as many to report on")
    parser.add_argument("--fit", type=Path, help="a folder of different source files to fit on")
    parser.add_argument("--wrong", type=float, default=0.2, help="most of what is shown that is wrong (default 0.2)")
    parser.add_argument("--stubs", type=float, default=0.2, help="most of what is shown that are stubs (default 0.2)")
    parser.add_argument("--write", action="store_true", help="store the fit in the model's settings.json")
    options = parser.parse_args(argv)
    fitting, reported = fitting_and_reported_files(options.corpus, options.fit)
    engine = suite.load_engine(options).varied(calibration=Calibration())  # a new fit does not build on an earlier one
    fitted_on = ask(engine, fitting, options.limit, options.seed, "to fit on")
    reported_on = ask(engine, reported, options.limit, options.seed, "to report")
    record = figures(fitted_on, reported_on, options.wrong, options.stubs) | suite.circumstances(engine, options)
    if options.write:
        suite.store_settings(engine.path, calibration=record["calibration"], utility=record["utility"])
    suite.deliver(record, results_table(record), options)
    return 0
