"""Judge what users see: `python -m mercury_lab.evaluation situations [--json] [--model MODEL] [--mirror DIR]`.

It opens files of ten languages in a language server, with all of its rules and its silence gate, and asks for ghost
text at cursors that were chosen by hand: after no letters of the author's line and after two. At half of the cursors
silence is right. With `--beginnings FILE` they are those of a JSON list, with the right beginnings at each, and it
counts what is wrong and what leaves a bracket or a string open. With `--mirror`, a folder of clones, the cursors are
those of a list that was drawn from public repositories (`commit_edits.cursor_list`); the record then has verdicts, and
no text.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.markup import escape
from rich.table import Column, Table

from mercury_lab.editing import drawn_cursors
from mercury_lab.editing.cursors import PLACES, Cursor, read_beginnings, read_cursors
from mercury_lab.editing.editor import Editor, ShownSuggestion, editor
from mercury_lab.editing.verdicts import VERDICTS, Verdict, begins_right, is_cut, leaves_open, runs_over, saved, verdict
from mercury_lab.evaluation import suite
from mercury_lab.evaluation.judge import reward
from mercury_lab.intervals import rate

LETTERS = (0, 2)
"""Numbers of letters typed before the server is asked."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What was shown at a cursor, and what it is worth."""

    cursor: Cursor
    letters: int
    shown: ShownSuggestion
    verdict: Verdict | None
    """None for silence."""
    saved: int
    cut: bool = False
    """It stops inside an expression."""
    runs_over: bool = False
    """It goes on into what stands below."""
    followed: "Judged | None" = None
    """After a text that is right to the line's end: what is shown once it was accepted."""

    @property
    def record(self) -> suite.SuiteRecord:
        """For looking at classes of mistakes; nobody tunes on single cursors."""
        return {
            "file": self.cursor.path.name,
            "line": self.cursor.before.count("\n") + 1,
            "place": self.cursor.place,
            "letters": self.letters,
            "silence_is_right": self.cursor.silent,
            "verdict": self.verdict,
            "cut": self.cut,
            "runs_over": self.runs_over,
            "confidence": self.shown.confidence,
        }

    @property
    def texts(self) -> suite.SuiteRecord:
        """The record with what is shown and what is right."""
        right = self.cursor.answers[0] if self.cursor.answers else ""
        return self.record | {"shown": self.shown.text, "right": right}


def judged(cursor: Cursor, letters: int, asked: Editor) -> Judged:
    """Ask at a cursor after some letters."""
    at = cursor.typed(letters)
    shown = asked.show(at)
    if not shown.text:
        return Judged(at, letters, shown, None, 0)
    quality, kept = verdict(shown.text, at.answers), saved(shown.text, at.answers)
    followed = next_line(at, letters, shown.text, asked) if quality == "line" else None
    return Judged(at, letters, shown, quality, kept, is_cut(shown.text, at), runs_over(shown.text, at), followed)


def next_line(cursor: Cursor, letters: int, text: str, asked: Editor) -> Judged:
    """Accept a text that is right to the line's end, and judge what is shown then: the next line, or nothing."""
    rests = tuple(each.removeprefix(text) for each in cursor.answers if each.startswith(text))
    left = any(rest.strip() for rest in rests)
    at = replace(cursor, before=cursor.before + text, answers=rests if left else (), silent=not left)
    shown = asked.accept(cursor, text)
    quality = verdict(shown.text, at.answers) if shown.text else None
    return Judged(at, letters, shown, quality, 0, runs_over=runs_over(shown.text, at))


def next_line_figures(found: Sequence[Judged]) -> suite.SuiteRecord:
    """After how many accepted lines something is shown, and how much of it is right; lines may follow or not."""
    counts = suite.SuiteRecord()
    for name, silent in (("lines follow", False), ("nothing follows", True)):
        own = [each for each in found if each.cursor.silent is silent]
        shown = [each.verdict for each in own if each.verdict]
        counts[name] = {
            "accepted": len(own),
            "shown": len(shown),
            **{verdict: shown.count(verdict) for verdict in VERDICTS},
            "wrong_rate": rate(shown.count("wrong"), len(shown)),
        }
    return counts


def figures(found: Sequence[Judged]) -> suite.SuiteRecord:
    """Counts, and shares of what is shown with their intervals; characters count where a suggestion is right."""
    verdicts = [each.verdict for each in found if each.verdict]
    counts: dict[str, int] = {name: verdicts.count(name) for name in VERDICTS}
    wanted = [each for each in found if not each.cursor.silent]
    characters = sum(len(each.cursor.answers[0].partition("\n")[0]) for each in wanted)
    kept = sum(each.saved for each in wanted)
    taken = sum(each.saved > 0 for each in found)
    return {
        "cursors": len(found),
        "shown": len(verdicts),
        **counts,
        "shown_rate": rate(len(verdicts), len(found)),
        **{f"{name}_rate": rate(count, len(verdicts)) for name, count in counts.items()},
        "characters": characters,
        "characters_saved": kept,
        "characters_saved_rate": kept / characters if characters else None,
        "taken": taken,
        "reward": reward(taken, len(verdicts) - taken),
        "cut": sum(each.cut for each in found),
        "runs_over": sum(each.runs_over for each in found),
        "several_lines": sum("\n" in each.shown.text.rstrip() for each in found),
        "several_lines_right": sum("\n" in e.shown.text.rstrip() and e.verdict == "line" for e in found),
    }


def judge_beginnings(cursors: Iterable[Cursor], asked: Editor) -> suite.SuiteRecord:
    """What is shown at cursors whose right beginnings are known: how much of it is wrong, or leaves something open."""
    answers = []
    for cursor in cursors:
        text = asked.show(cursor).text
        is_wrong = bool(text) and not begins_right(text, cursor.answers)
        answers.append({"name": cursor.name, "shown": text, "wrong": is_wrong, "left open": leaves_open(text, cursor)})
    shown = [each for each in answers if each["shown"]]
    wrong, left_open = (sum(bool(each[name]) for each in shown) for name in ("wrong", "left open"))
    return {
        "cursors": len(answers),
        "shown": len(shown),
        "wrong": wrong,
        "left open": left_open,
        "wrong_rate": rate(wrong, len(shown)),
        "answers": answers,
    }


def beginnings_table(record: suite.SuiteRecord) -> Table:
    title = "{shown} shown at {cursors} cursors: {wrong} wrong, {left open} leave something open".format(**record)
    table = Table("cursor", "shown", "", title=title)
    for each in record["answers"]:
        faults = [name for name in ("wrong", "left open") if each[name]]
        table.add_row(each["name"], escape(each["shown"]), ", ".join(faults))
    return table


def figures_by_group(found: Sequence[Judged]) -> suite.SuiteRecord:
    """The figures of one number of letters: over all cursors, by what is right there, and by place."""
    places = dict.fromkeys(each.cursor.place for each in sorted(found, key=_place_number))
    return {
        "all": figures(found),
        "where a suggestion is right": figures([each for each in found if not each.cursor.silent]),
        "where silence is right": figures([each for each in found if each.cursor.silent]),
        "places": {place: figures([each for each in found if each.cursor.place == place]) for place in places},
    }


def _place_number(found: Judged) -> int:
    return (PLACES + drawn_cursors.PLACES).index(found.cursor.place)


def results_table(record: suite.SuiteRecord) -> Table:
    columns = ("", "shown", "to the line's end", "in part", "stub", "wrong", "saved", "cut", "runs over")
    table = Table(Column("cursors", no_wrap=True), *columns)
    for letters, groups in record["letters"].items():
        table.add_section()
        rows = {name: row for name, row in groups.items() if name != "places"} | groups["places"]
        for name, row in rows.items():
            shares = [suite.percent(row[f"{verdict}_rate"]["share"]) for verdict in VERDICTS]
            shown, kept = suite.percent(row["shown_rate"]["share"]), suite.percent(row["characters_saved_rate"])
            title = f"{name}, {letters} letters" if name == "all" else name
            table.add_row(title, str(row["cursors"]), shown, *shares, kept, str(row["cut"]), str(row["runs_over"]))
    return table


def spread(cursors: Sequence[Cursor], limit: int | None) -> Sequence[Cursor]:
    """`limit` of the cursors at equal distances; all for None."""
    count = min(limit or len(cursors), len(cursors))
    return [cursors[number * len(cursors) // count] for number in range(count)]


def ask_everywhere(cursors: Iterable[Cursor], asked: Editor) -> list[Judged]:
    """Every cursor, after every number of letters."""
    return [judged(cursor, letters, asked) for cursor in cursors for letters in LETTERS]


def main(argv: list[str]) -> int:
    parser = suite.server_parser("situations", __doc__, "cursors, spread over all files")
    parser.add_argument("--corpus", type=Path, default=Path("tests/data/situations"), help="files and their cursors")
    parser.add_argument(
        "--mirror", type=Path, help="folder of bare clones, OWNER+NAME[/repo]: run a drawn list instead"
    )
    parser.add_argument(
        "--list", type=Path, default=drawn_cursors.LIST, help=f"the list (default: {drawn_cursors.LIST})"
    )
    parser.add_argument("--beginnings", type=Path, help="a JSON list of cursors with their right beginnings instead")
    parser.add_argument("--texts", type=Path, help="write the texts here, too; for lists that rules may be written on")
    options = parser.parse_args(argv)
    settings = suite.server_settings(options)
    if options.beginnings:
        begun = read_beginnings(options.beginnings)
        with editor(settings) as asked:
            record = judge_beginnings(suite.progress(begun, "situations"), asked) | {"model": asked.model}
        suite.deliver(record | settings, beginnings_table(record), options)
        return 0
    is_drawn = options.mirror is not None
    all_cursors = drawn_cursors.read_drawn(options.list, options.mirror) if is_drawn else read_cursors(options.corpus)
    cursors = spread(all_cursors, options.limit)
    with editor(settings) as asked:
        found = ask_everywhere(suite.progress(cursors, "situations"), asked)
        model = asked.model
    followed = [each.followed for each in found if each.followed]
    by_letters = {n: figures_by_group([each for each in found if each.letters == n]) for n in LETTERS}
    record = {
        "model": model,
        "letters": by_letters,
        "next_lines": next_line_figures(followed),
        **settings,
        "corpus": str(options.list if is_drawn else options.corpus),
        "machine": suite.machine(options.device or "cpu"),
        "answers": [each.record if is_drawn else each.texts for each in found if each.verdict],
    }
    if options.texts:
        options.texts.write_text("".join(json.dumps(each.texts) + "\n" for each in (*found, *followed)), "utf-8")
    suite.deliver(record, results_table(record), options)
    return 0
