"""Judge next edits: `python -m mercury_lab.evaluation edits [--json] [--model MODEL] [--corpus DIR]`.

It opens the files of scenarios written by hand in a language server, makes a user's edits key by key, and asks for the
next edit: unasked after the last change, and by key. At half of the positions silence is right. Scenarios test rules;
`mercury_lab.commit_edits` measures what users get.

Score = mean character F of the positions that want an edit (0 where nothing is shown) x the harmonic mean of show
rate (share of these positions where something is shown) and quiet rate (share of the others where nothing is).
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from rich.table import Column, Table

from mercury_lab.editing.edit_desk import WAYS, Answer, EditDesk, own_daemon
from mercury_lab.editing.edit_figures import Verdict, bootstrap, harmonic_mean, judge, leads_to_edit
from mercury_lab.editing.scenarios import Scenario, read_scenarios
from mercury_lab.evaluation import suite
from mercury_lab.intervals import rate

SCENARIOS = Path("tests/data/edits")


@dataclass(frozen=True, slots=True)
class Judged:
    """A scenario, and what was shown for it."""

    scenario: Scenario
    answer: Answer
    verdict: Verdict = field(default_factory=Verdict)

    @property
    def is_shown(self) -> bool:
        return self.answer.edit is not None

    @property
    def jumps(self) -> bool:
        return self.answer.jump is not None

    @property
    def jumps_right(self) -> bool:
        """Whether it takes the user to a right edit."""
        jump = self.answer.jump
        return jump is not None and leads_to_edit(self.scenario, jump.path, jump.line)

    def record(self) -> suite.SuiteRecord:
        """For looking at classes of mistakes."""
        edit = self.answer.edit
        shown = edit and {"file": edit.path, "start": edit.start, "end": edit.end, "text": edit.text}
        return {
            "scenario": self.scenario.name,
            "language": self.scenario.language,
            "silence_is_right": self.scenario.is_quiet,
            "is_shown": self.is_shown,
            "jumps": self.jumps,
            "jumps_right": self.jumps_right,
            "right_place": self.verdict.right_place,
            "exact": self.verdict.exact,
            "character_f": round(self.verdict.character_f, 3),
            "ms": round(self.answer.milliseconds),
            "shown": shown,
        }


def judged(scenario: Scenario, answer: Answer) -> Judged:
    """An answer with its verdict."""
    if answer.edit is None:
        return Judged(scenario, answer)
    return Judged(scenario, answer, judge(scenario, scenario.now, answer.edit))


def score(found: Sequence[Judged]) -> float | None:
    """The score of the module's docstring; None without positions of both sorts."""
    wanted = [each for each in found if not each.scenario.is_quiet]
    quiet = [each for each in found if each.scenario.is_quiet]
    if not wanted or not quiet:
        return None
    show_rate = fmean(each.is_shown for each in wanted)
    quiet_rate = fmean(not each.is_shown for each in quiet)
    return fmean(each.verdict.character_f for each in wanted) * harmonic_mean(show_rate, quiet_rate)


def figures(found: Sequence[Judged], seed: int) -> suite.SuiteRecord:
    """Shares with 95 % Wilson intervals; character F and score with bootstrap intervals by source."""
    wanted = [each for each in found if not each.scenario.is_quiet]
    quiet = [each for each in found if each.scenario.is_quiet]
    with_history = [each for each in quiet if each.scenario.edits]
    shown = [each for each in wanted if each.is_shown]
    times = sorted(each.answer.milliseconds for each in found)
    return {
        "wanted": len(wanted),
        "quiet": len(quiet),
        "show": rate(len(shown), len(wanted)),
        "right_place": rate(sum(each.verdict.right_place for each in wanted), len(wanted)),
        "right_place_of_shown": rate(sum(each.verdict.right_place for each in shown), len(shown)),
        "exact": rate(sum(each.verdict.exact for each in wanted), len(wanted)),
        "exact_of_shown": rate(sum(each.verdict.exact for each in shown), len(shown)),
        "quiet_rate": rate(sum(not each.is_shown for each in quiet), len(quiet)),
        "quiet_with_history": rate(sum(not each.is_shown for each in with_history), len(with_history)),
        "character_f": _estimate(wanted, character_f, seed),
        "score": _estimate(found, score, seed),
        "jump_right": rate(sum(each.jumps_right for each in wanted), len(wanted)),
        "right_of_jumps": rate(sum(each.jumps_right for each in found), sum(each.jumps for each in found)),
        "right_place_or_jump": rate(sum(each.verdict.right_place or each.jumps_right for each in wanted), len(wanted)),
        "quiet_without_jump": rate(sum(not (each.is_shown or each.jumps) for each in with_history), len(with_history)),
        "ms_p50": round(times[len(times) // 2]) if times else None,
        "ms_p95": round(times[min(len(times) - 1, len(times) * 95 // 100)]) if times else None,
    }


def character_f(wanted: Sequence[Judged]) -> float | None:
    """Mean character F; positions where nothing is shown count 0."""
    return fmean(each.verdict.character_f for each in wanted) if wanted else None


def _estimate(
    found: Sequence[Judged], figure: Callable[[Sequence[Judged]], float | None], seed: int
) -> suite.SuiteRecord:
    return {"mean": figure(found), "interval": bootstrap(found, lambda each: each.scenario.source, figure, seed)}


def figures_by_group(found: Sequence[Judged], seed: int) -> suite.SuiteRecord:
    """The figures of one way: all, by kind and by language."""
    kinds = sorted({each.scenario.kind for each in found})
    languages = sorted({each.scenario.language for each in found})
    return {
        "all": figures(found, seed),
        "kinds": {kind: figures([e for e in found if e.scenario.kind == kind], seed) for kind in kinds},
        "languages": {name: figures([e for e in found if e.scenario.language == name], seed) for name in languages},
    }


def results_table(record: suite.SuiteRecord) -> Table:
    names = ("positions", "show", "place", "exact", "character F", "quiet", "score", "ms p50", "p95")
    table = Table(Column("", no_wrap=True), *names)
    for way, groups in record["ways"].items():
        table.add_section()
        for name, row in {way: groups["all"], **groups["kinds"], **groups["languages"]}.items():
            shares = [suite.percent(row[key]["share"]) for key in ("show", "right_place", "exact")]
            means = ["-" if row[key]["mean"] is None else f"{row[key]['mean']:.2f}" for key in ("character_f", "score")]
            count, quiet = f"{row['wanted']} + {row['quiet']}", suite.percent(row["quiet_rate"]["share"])
            times = f"{row['ms_p50']}", f"{row['ms_p95']}"
            table.add_row(name, count, *shares, means[0], quiet, means[1], *times)
    return table


def spread(scenarios: Sequence[Scenario], limit: int | None) -> Sequence[Scenario]:
    """`limit` of the scenarios at equal distances, half of them quiet if there are enough; all for None."""
    if limit is None or limit >= len(scenarios):
        return scenarios
    sorts = [[s for s in scenarios if s.is_quiet is quiet] for quiet in (False, True)]
    counts = [min(limit - limit // 2, len(sorts[0])), min(limit // 2, len(sorts[1]))]
    return [own[n * len(own) // count] for own, count in zip(sorts, counts, strict=True) for n in range(count)]


def ask_server(
    scenarios: Sequence[Scenario], ways: Sequence[str], settings: Mapping[str, object]
) -> tuple[dict[str, list[Judged]], str]:
    """What the server shows, by way, and the name of its model; every scenario has a connection of its own."""
    found: dict[str, list[Judged]] = {way: [] for way in ways}
    model = "unknown"
    with own_daemon():
        for scenario in suite.progress(scenarios, "next edits"):
            with EditDesk(settings) as desk:
                desk.work(scenario)
                for way in ways:
                    found[way].append(judged(scenario, desk.ask(scenario, way)))
                model = desk.model
    return found, model


def option_parser() -> argparse.ArgumentParser:
    parser = suite.server_parser("edits", __doc__, "positions, half of them quiet")
    parser.add_argument("--corpus", type=Path, default=SCENARIOS, help="a folder of *.edits files")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, help="ways of asking")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap intervals")
    return parser


def main(argv: list[str]) -> int:
    options = option_parser().parse_args(argv)
    scenarios = spread(read_scenarios(options.corpus), options.limit)
    found, model = ask_server(scenarios, options.ways, suite.server_settings(options))
    record = {
        "models": {"server": model},
        "limit": options.limit,
        "seed": options.seed,
        **suite.server_settings(options),
        "machine": suite.machine(options.device or "cpu"),
        "ways": {way: figures_by_group(own, options.seed) for way, own in found.items()},
        "answers": {way: [each.record() for each in own if each.is_shown or each.jumps] for way, own in found.items()},
    }
    suite.deliver(record, results_table(record), options)
    return 0
