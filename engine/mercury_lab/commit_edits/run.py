"""Judge next edits of real commits: `python -m mercury_lab.evaluation commits --mirror DIR [--model M] [--limit N]`.

At each position of the list two changes of a commit are typed in a language server, key by key, and the next edit is
asked for: unasked behind the last change, and by key. The rest of the commit is what is right; half of the repositories
are for development, and only `--held-out` opens the others. `--record FILE` keeps every judged position at once, and a
later run with the same file goes on from there.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from mercury_engine.errors import RequestError
from rich.table import Column, Table

from mercury_lab.commit_edits.build import family, rank
from mercury_lab.commit_edits.position import LIST, Half, Position, Texts, read_list, scenario
from mercury_lab.commit_edits.verdict import Verdict, judge
from mercury_lab.editing.edit_desk import WAYS, Answer, EditDesk, own_daemon
from mercury_lab.editing.edit_figures import bootstrap
from mercury_lab.editing.scenarios import Scenario
from mercury_lab.evaluation import suite
from mercury_lab.intervals import rate

DEADLINE = 10.0
"""Seconds after which an answer counts as none."""

HELD_OUT_NOTE = (
    "This opens the held-out half: once a week at most, and nothing is to be changed because of single positions.\n"
)


@dataclass(frozen=True, slots=True)
class Judged:
    """What was shown at a position, and what it is worth; `source`: see `mercury_lsp.completion.suggestions.Source`."""

    position: str
    repository: str
    shape: str
    language: str
    way: str
    wants: bool
    is_shown: bool
    is_late: bool
    is_useful: bool
    is_exact: bool
    source: str
    ms: int


def judged(at: Position, found: Scenario, way: str, answer: Answer, deadline: float) -> Judged:
    """An answer with its verdict; one that comes too late is not shown."""
    is_late = answer.milliseconds > 1000 * deadline
    edit = None if is_late else answer.edit
    verdict = judge(found, edit) if edit is not None and not found.is_quiet else Verdict()
    where = (at.name, at.repository, at.shape, family(at.language), way)
    verdicts = (verdict.is_useful, verdict.is_exact)
    what = (not found.is_quiet, edit is not None, is_late and answer.edit is not None)
    return Judged(*where, *what, *verdicts, answer.source if edit is not None else "", round(answer.milliseconds))


def figures(found: Sequence[Judged]) -> suite.SuiteRecord:
    """Shares with 95 % Wilson intervals: of the positions that want an edit, of what is shown there, and of the quiet
    ones."""
    wanted = [each for each in found if each.wants]
    quiet = [each for each in found if not each.wants]
    shown = [each for each in wanted if each.is_shown]
    times = sorted(each.ms for each in found)
    return {
        "wanted": len(wanted),
        "quiet": len(quiet),
        "useful": _rate(sum(each.is_useful for each in wanted), len(wanted)),
        "exact": _rate(sum(each.is_exact for each in wanted), len(wanted)),
        "wrong": _rate(sum(not each.is_useful for each in shown), len(wanted)),
        "missed": _rate(len(wanted) - len(shown), len(wanted)),
        "wrong_of_shown": _rate(sum(not each.is_useful for each in shown), len(shown)),
        "wrong_of_all_shown": _rate(
            sum(each.is_shown and not each.is_useful for each in found), sum(each.is_shown for each in found)
        ),
        "quiet_rate": _rate(sum(not each.is_shown for each in quiet), len(quiet)),
        "late": sum(each.is_late for each in found),
        "ms_p50": times[len(times) // 2] if times else None,
        "ms_p95": times[min(len(times) - 1, len(times) * 95 // 100)] if times else None,
    }


def _rate(part: int, whole: int) -> suite.SuiteRecord:
    return {"count": part} | rate(part, whole)


def figures_by_group(found: Sequence[Judged], seed: int) -> suite.SuiteRecord:
    """The figures of one way: all, with bootstrap intervals by repository; by shape, language and who answered."""

    def by(key: Callable[[Judged], str]) -> suite.SuiteRecord:
        names = sorted({key(each) for each in found})
        return {name: figures([each for each in found if key(each) == name]) for name in names}

    shown = [each for each in found if each.is_shown]
    sources = sorted({each.source for each in shown})
    return {
        "all": figures(found) | {"by_repository": _intervals(found, seed)},
        "shapes": by(lambda each: each.shape),
        "languages": by(lambda each: each.language),
        "sources": {name: _of_source([each for each in shown if each.source == name]) for name in sources},
    }


def _intervals(found: Sequence[Judged], seed: int) -> suite.SuiteRecord:
    """95 % bootstrap intervals of the main shares; whole repositories are drawn, whose positions are alike."""

    def share(is_one: Callable[[Judged], bool], wants: bool) -> tuple[float, float] | None:
        own = [each for each in found if each.wants is wants]
        return bootstrap(own, lambda each: each.repository, lambda drawn: fmean(map(is_one, drawn)), seed)

    return {
        "useful": share(lambda each: each.is_useful, True),
        "exact": share(lambda each: each.is_exact, True),
        "quiet_rate": share(lambda each: not each.is_shown, False),
    }


def _of_source(shown: Sequence[Judged]) -> suite.SuiteRecord:
    """What one of those who answer has shown."""
    wanted = [each for each in shown if each.wants]
    return {
        "shown": len(shown),
        "useful": _rate(sum(each.is_useful for each in wanted), len(wanted)),
        "exact": _rate(sum(each.is_exact for each in wanted), len(wanted)),
        "where_silence_is_right": len(shown) - len(wanted),
    }


def results_table(record: suite.SuiteRecord) -> Table:
    names = ("positions", "useful", "95 %", "exact", "wrong", "of shown", "missed", "quiet", "95 %", "ms p50")
    table = Table(Column("", no_wrap=True), *names)
    for way, groups in record["ways"].items():
        table.add_section()
        for name, row in {way: groups["all"], **groups["shapes"], **groups["languages"]}.items():
            cells = [_percent(row, key) for key in ("exact", "wrong", "wrong_of_shown", "missed", "quiet_rate")]
            count = f"{row['wanted']} + {row['quiet']}"
            spans = _span(row, "useful"), _span(row, "quiet_rate")
            table.add_row(name, count, _percent(row, "useful"), spans[0], *cells, spans[1], str(row["ms_p50"]))
        for name, row in groups["sources"].items():
            count = f"{row['useful']['count']} of {row['shown'] - row['where_silence_is_right']}"
            table.add_row(f"by {name}", f"shown {row['shown']}", count, _span(row, "useful"), _percent(row, "exact"))
    return table


def _percent(row: suite.SuiteRecord, key: str) -> str:
    return suite.percent(row[key]["share"])


def _span(row: suite.SuiteRecord, key: str) -> str:
    interval = row[key]["interval"]
    return "-" if interval is None else f"{interval[0]:.0%} to {interval[1]:.0%}"


def chosen(positions: Sequence[Position], limit: int | None) -> list[Position]:
    """`limit` positions that want an edit and as many quiet ones, mixed; a larger limit adds to a smaller one's."""
    ordered = sorted(positions, key=lambda at: rank(at.name))
    sorts = [[at for at in ordered if bool(at.left) is wants][:limit] for wants in (True, False)]
    return sorted([at for own in sorts for at in own], key=lambda at: rank(at.name))


class Record:
    """The judged positions of a run, in a file with a line for each, so that an interrupted run goes on."""

    def __init__(self, path: Path | None, circumstances: Mapping[str, Any]) -> None:
        """Raises RequestError if the file is of a run in other circumstances."""
        self._path = path
        self.found: list[Judged] = []
        if path is None:
            return
        if path.is_file():
            head, *rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            if head != circumstances:
                raise RequestError(f"{path} is the record of another run ({head}); name another file")
            self.found = [Judged(**row) for row in rows]
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._append(circumstances)

    def add(self, each: Judged) -> None:
        self.found.append(each)
        self._append(asdict(each))

    def _append(self, row: Mapping[str, Any]) -> None:
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


def ask_server(
    positions: Sequence[Position], texts: Texts, record: Record, options: argparse.Namespace
) -> Iterator[tuple[Scenario, Judged, Answer]]:
    """Every position that the record lacks, in every way; each has a connection, so a history, of its own."""
    known = {(each.position, each.way) for each in record.found}
    with own_daemon():
        for at in suite.progress(positions, "commits"):
            ways = [way for way in options.ways if (at.name, way) not in known]
            if not ways:
                continue
            found = scenario(at, texts)
            with EditDesk(suite.server_settings(options)) as desk:
                desk.work(found)
                for way in ways:
                    answer = desk.ask(found, way)
                    record.add(judged(at, found, way, answer, options.deadline))
                    yield found, record.found[-1], answer


def option_parser() -> argparse.ArgumentParser:
    parser = suite.server_parser("commits", __doc__, "positions that want an edit, and as many quiet ones")
    parser.add_argument("--mirror", type=Path, required=True, help="folder of bare clones, OWNER+NAME[/repo]")
    parser.add_argument("--list", type=Path, default=LIST, help=f"positions (default: {LIST})")
    parser.add_argument(
        "--held-out", action="store_true", help="the half that nothing is tuned to: once a week at most"
    )
    parser.add_argument("--edit-model", help="a model of its own for next edits")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, help="ways of asking")
    parser.add_argument(
        "--deadline", type=float, default=DEADLINE, help=f"seconds for an answer (default {DEADLINE:.0f})"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap intervals")
    parser.add_argument("--record", type=Path, help="keep every judged position in this file, and go on from there")
    parser.add_argument("--texts", type=Path, help="write what is shown into this file; not for the held-out half")
    return parser


def main(argv: list[str]) -> int:
    parser = option_parser()
    options = parser.parse_args(argv)
    if options.held_out and options.texts:
        parser.error("texts of the held-out half stay unread: leave out --texts")
    if options.held_out:
        sys.stderr.write(HELD_OUT_NOTE)
    half: Half = "held-out" if options.held_out else "develop"
    listed = read_list(options.list)
    positions = chosen(listed.half(half), options.limit)
    circumstances = {"half": half, "deadline": options.deadline, **suite.server_settings(options)}
    record = Record(options.record, circumstances)
    with Texts(options.mirror, listed.sources) as texts:
        for found, last, answer in ask_server(positions, texts, record, options):
            if options.texts:
                _write_text(options.texts, found, last, answer)
    names = {at.name for at in positions}
    own = [each for each in record.found if each.position in names]
    result = {
        **circumstances,
        "limit": options.limit,
        "seed": options.seed,
        "machine": suite.machine(options.device or "cpu"),
        "ways": {way: figures_by_group([e for e in own if e.way == way], options.seed) for way in options.ways},
        "answers": [asdict(each) for each in own if each.is_shown or each.is_late],
    }
    suite.deliver(result, results_table(result), options)
    return 0


def _write_text(path: Path, found: Scenario, judged: Judged, answer: Answer) -> None:
    """What was shown, and what was right, for looking at classes of mistakes; it quotes other people's code."""
    edit = answer.edit
    removed = edit.removed(found.now) if edit else ""
    wants = [[each.path, each.start, each.removed(found.now), each.text] for each in found.wants[:3]]
    made = [[each.path, each.start, each.text] for each in found.edits]
    shown = edit and [edit.path, edit.start, removed, edit.text]
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(judged) | {"made": made, "wants": wants, "shown": shown}) + "\n")
