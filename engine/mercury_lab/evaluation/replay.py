"""Replay keystrokes: `python -m mercury_lab.evaluation replay [--json] [--corpus DIR] [--limit N] [--levels]`.

It types lines of otherwise complete held-out files, character by character from the indentation to the end of the
line, and after every keystroke requests a suggestion as the server does, which is shown if it is worth that. A perfect
user accepts the first line of a suggestion if it is right to the end of the line, or else its longest right prefix of
whole words; typing then continues after it. Typing through a suggestion keeps the remainder; the model is not called.

With `--levels` it types every line at each level of `eagerness`, and by the rules that `--rule` names, from the same
fills; `auto` learns from what was taken before. The reward is 0.75 for a text of which something is taken and -0.25 for
any other.

Three of the server's rules are left out because they need syntax trees: headers of definitions outside the window,
multi-line fills only where the syntax allows them (here: on every empty line), and the syntax check of fills.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace

from mercury_engine.utility import Utility
from rich.table import Column, Table

from mercury_lab.evaluation import suite
from mercury_lab.evaluation.baselines import GapFiller, copying, mercury_filler, once_filler, reader_filler
from mercury_lab.evaluation.gaps import HeldOutFile, gap_at, held_out_files, sample_places
from mercury_lab.evaluation.judge import accepted, fitted, is_stub, keeps, reward
from mercury_lsp.completion.price import LEVELS, Price


@dataclass(frozen=True, slots=True)
class ReplayedLine:
    """A line to type: text[start:end] of the document, without indentation and trailing blanks."""

    document: HeldOutFile
    start: int
    end: int


@dataclass(slots=True)
class Tally:
    """Counts of what happened while lines were typed."""

    lines: int = 0
    characters: int = 0
    written: int = 0
    """Characters that came from accepted suggestions."""
    requests: int = 0
    shown: int = 0
    right: int = 0
    stubs: int = 0
    """Right ones that end before the line does, after a few characters."""
    accepted: int = 0
    seconds: list[float] = field(default_factory=list)
    """Duration of every request."""

    def add(self, other: "Tally") -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


def type_line(line: ReplayedLine, fill: GapFiller, utility: Utility) -> Tally:
    """Type one line with suggestions under the server's rules: utility, multiline on an empty line, typing through."""
    tally = Tally(lines=1, characters=line.end - line.start)
    text, at, shown = line.document.text, line.start, ""
    while at < line.end:
        if not shown:
            shown = _suggest(line, at, fill, utility, tally)
            if taken := accepted(shown, text[at : line.end]):
                tally.accepted += 1
                tally.written += len(taken)
                at, shown = at + len(taken), shown[len(taken) :]
                continue
        shown = shown[1:] if shown[:1] == text[at] else ""
        at += 1
    return tally


def _suggest(line: ReplayedLine, at: int, fill: GapFiller, utility: Utility, tally: Tally) -> str:
    """The suggestion shown with the cursor at offset `at`, "" for none; counts it in the tally."""
    gap = gap_at(line.document, at, line.end, "line")
    gap = replace(gap, request=replace(gap.request, multiline=at == line.start, utility=utility))
    answer = fill(gap)
    tally.seconds.append(answer.elapsed)
    tally.requests += 1
    text = fitted(answer.text, gap.request).rstrip()
    if not text or not utility.is_enough(answer.confidence, text, answer.is_finished):
        return ""
    right = keeps(text, gap.truth)
    tally.shown += 1
    tally.right += right
    tally.stubs += right and is_stub(text, gap.truth)
    return text


def figures(tally: Tally) -> suite.SuiteRecord:
    """The figures of a replay: shares up to 1, None where nothing happened. Accepting costs one keystroke."""
    return {
        "written_by_accepting": _share(tally.written, tally.characters),
        "keystrokes_saved": _share(tally.written - tally.accepted, tally.characters),
        "shown_rate": _share(tally.shown, tally.requests),
        "accepted_rate": _share(tally.accepted, tally.shown),
        "precision": _share(tally.right, tally.shown),
        "stub_rate": _share(tally.stubs, tally.shown),
        "not_taken_per_100": _per_100(tally.shown - tally.accepted, tally),
        "reward_per_100": _per_100(reward(tally.accepted, tally.shown - tally.accepted), tally),
        "ms_p50": 1e3 * statistics.median(tally.seconds or [0.0]),
        "ms_p95": 1e3 * sorted(tally.seconds or [0.0])[int(0.95 * max(0, len(tally.seconds) - 1))],
        "count": tally.lines,
        "characters": tally.characters,
        "requests": tally.requests,
        "shown": tally.shown,
        "accepted": tally.accepted,
    }


def _per_100(count: float, tally: Tally) -> float | None:
    """For 100 characters typed or accepted."""
    return 100 * count / tally.characters if tally.characters else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def sample_lines(found: Sequence[HeldOutFile], limit: int, seed: int) -> list[ReplayedLine]:
    """Lines to type; every repository is equally likely, and the same seed gives the same lines."""
    spans = sample_places(found, limit, seed, "line")
    return [ReplayedLine(d, start, start + len(d.text[start:end].rstrip())) for d, start, end in spans]


def replay(lines: Sequence[ReplayedLine], fill: GapFiller, utility: Utility, name: str) -> suite.SuiteRecord:
    """Type all lines with one filler: figures over all and over Python."""
    whole, python = Tally(), Tally()
    for line in suite.progress(lines, name):
        tally = type_line(line, fill, utility)
        whole.add(tally)
        if line.document.language == "python":
            python.add(tally)
    return figures(whole) | {"python": figures(python)}


def replay_levels(
    lines: Sequence[ReplayedLine], fill: GapFiller, model: Utility, rules: Iterable[Utility]
) -> suite.SuiteRecord:
    """Type all lines by some fixed rules and at every level: figures by rule or level."""
    fixed = {f"{rule.wrong_cost:g}, {rule.least:g}, {rule.min_probability:g}": rule for rule in rules}
    fixed |= {level: Price().gate(model, level, "") for level in LEVELS}
    tallies = {name: Tally() for name in (*fixed, "auto")}
    price = Price()
    for line in suite.progress(lines, "levels"):
        language = line.document.language
        for name, tally in tallies.items():
            one = type_line(line, fill, fixed[name] if name in fixed else price.gate(model, "auto", language))
            tally.add(one)
            if name == "auto":
                for number in range(one.shown):
                    price.learn(language, number < one.accepted)
    return {name: figures(tally) for name, tally in tallies.items()}


def levels_table(record: suite.SuiteRecord) -> Table:
    columns = ("keystrokes saved", "shown", "taken", "not taken per 100 characters", "reward per 100", "right")
    table = Table("rule or level", *columns)
    for name, row in record["levels"].items():
        rates = (f"{row[key]:.2f}" for key in ("not_taken_per_100", "reward_per_100"))
        saved, right = suite.percent(row["keystrokes_saved"]), suite.percent(row["precision"])
        table.add_row(name, saved, str(row["shown"]), str(row["accepted"]), *rates, right)
    return table


def results_table(record: suite.SuiteRecord) -> Table:
    table = Table(
        Column("typed with", no_wrap=True), "written by accepting", "shown", "accepted", "precision", "ms p50", "lines"
    )
    for name, part in {record["model"]: record, **record["baselines"]}.items():
        for title, row in ((name, part), (f"{name}, Python", part["python"])):
            shares = [row[key] for key in ("written_by_accepting", "shown_rate", "accepted_rate", "precision")]
            table.add_row(title, *map(suite.percent, shares), f"{row['ms_p50']:.0f}", str(row["count"]))
    return table


def main(argv: list[str]) -> int:
    parser = suite.parser("replay", __doc__, 60, "lines to type")
    parser.add_argument("--levels", action="store_true", help="type at every level of eagerness, from the same fills")
    parser.add_argument(
        "--rule",
        nargs=3,
        type=float,
        action="append",
        default=[],
        metavar=("COST", "LEAST", "PROBABILITY"),
        help="with --levels, type by this rule, too",
    )
    parser.add_argument("--baselines", action="store_true", help="also type with the reader alone and by copying")
    options = parser.parse_args(argv)
    lines = sample_lines(held_out_files(options.corpus), options.limit, options.seed)
    engine = suite.load_engine(options)
    if options.levels:
        rules = [Utility(*rule) for rule in options.rule]
        levels = replay_levels(lines, once_filler(engine), engine.utility, rules)
        record = {"levels": levels, "lines": len(lines)} | suite.circumstances(engine, options)
        suite.deliver(record, levels_table(record), options)
        return 0
    ways = {"left to right": reader_filler(engine), "copy": copying} if options.baselines else {}
    record = replay(lines, mercury_filler(engine), engine.utility, engine.name) | {
        "utility": asdict(engine.utility),
        "baselines": {name: replay(lines, fill, engine.utility, name) for name, fill in ways.items()},
        **suite.circumstances(engine, options),
    }
    suite.deliver(record, results_table(record), options)
    return 0
