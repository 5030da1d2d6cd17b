"""The suite's figures by hand, the cursors that are in the repository, and the suite's commands."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from mercury_lab.editing import situations
from mercury_lab.editing.cursors import PLACES, Cursor, read_beginnings, read_cursors
from mercury_lab.editing.editor import ShownSuggestion
from mercury_lab.intervals import wilson
from rich.console import Console

from mercury_lsp.documents.languages import language_of
from mercury_lsp.errors import UsageError
from tests.support import tiny

CURSORS = Path(__file__).parents[2] / "data" / "situations"


class ScriptedEditor:
    """Shows what it was given for the end of the text before the cursor; remembers every document."""

    def __init__(self, shown: dict[str, str]):
        self._shown = shown
        self.asked: list[str] = []

    def show(self, cursor: Cursor) -> ShownSuggestion:
        self.asked.append(cursor.before)
        return ShownSuggestion(
            next((text for end, text in self._shown.items() if cursor.before.endswith(end)), ""), 0.9
        )

    def accept(self, cursor: Cursor, text: str) -> ShownSuggestion:
        return self.show(replace(cursor, before=cursor.before + text))


def cursor(before: str, *answers: str, silent: bool = False) -> Cursor:
    return Cursor(Path("a.py"), "body", before, "\n", answers, silent)


def asked(shown: dict[str, str], *cursors: Cursor) -> dict:
    found = situations.ask_everywhere(cursors, ScriptedEditor(shown))
    return situations.figures([each for each in found if each.letters == 2])


def test_a_cursor_is_asked_before_and_after_two_letters():
    editor = ScriptedEditor({})
    situations.ask_everywhere([cursor("return ", "result")], editor)
    assert editor.asked == ["return ", "return re"]


def test_shares_of_verdicts_are_of_what_is_shown():
    one, other, third = cursor("a = ", "first"), cursor("b = ", "second"), cursor("c = ", "third")
    figures = asked({"a = fi": "rst", "b = se": "ven"}, one, other, third)
    assert (figures["cursors"], figures["shown"], figures["line"], figures["wrong"]) == (3, 2, 1, 1)
    assert figures["shown_rate"]["share"] == pytest.approx(2 / 3)
    assert figures["line_rate"] == {"share": 0.5, "interval": wilson(1, 2)}
    assert (figures["taken"], figures["reward"]) == (1, 0.75 - 0.25)


@pytest.mark.parametrize(
    ("answer", "shown", "verdict"),
    [
        ("first\nb = 2\nc = 3", "\nb = 2", "line"),
        ("first\nb = 2", "\nc = 3", "wrong"),
        ("first\nb = 2", "", None),
        ("first", "\nb = 2", "wrong"),
        ("first\n", "", None),
    ],
)
def test_what_follows_an_accepted_line_is_judged(answer, shown, verdict):
    editor = ScriptedEditor({"a = fi": "rst", "a = first": shown} if shown else {"a = fi": "rst"})
    [_, found] = situations.ask_everywhere([cursor("a = ", answer)], editor)
    assert found.followed.verdict == verdict
    figures = situations.next_line_figures([found.followed])
    row = figures["lines follow" if answer.strip().count("\n") else "nothing follows"]
    assert (row["accepted"], row["shown"], row["wrong"]) == (1, int(bool(shown)), int(verdict == "wrong"))


def test_characters_count_where_a_suggestion_is_right():
    figures = asked({"a = fi": "rst"}, cursor("a = ", "first"), cursor("b = ", "a whim", silent=True))
    assert (figures["characters"], figures["characters_saved"], figures["characters_saved_rate"]) == (3, 3, 1.0)


def test_without_cursors_there_are_no_shares():
    figures = situations.figures([])
    assert figures["line_rate"] == figures["shown_rate"] == {"share": None, "interval": None}
    assert figures["characters_saved_rate"] is None


def test_a_wilson_interval_is_that_of_the_tables():
    assert wilson(0, 0) is None
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)


def test_fewer_cursors_are_spread_over_all():
    cursors = [cursor(f"{number} = ", "x") for number in range(10)]
    assert [each.before[0] for each in situations.spread(cursors, 4)] == ["0", "2", "5", "7"]
    assert situations.spread(cursors, None) == situations.spread(cursors, 99) == cursors


def test_the_cursors_are_laid_out_as_promised():
    cursors = read_cursors(CURSORS)
    places = Counter(each.place for each in cursors)
    assert len(cursors) >= 200
    assert sum(each.silent for each in cursors) == len(cursors) // 2
    assert len({language_of(each.path.name) for each in cursors}) >= 10
    assert set(places) == set(PLACES) and min(places.values()) >= 20
    assert all(len(each.answers[0].partition("\n")[0]) >= 5 for each in cursors if not each.silent)


def test_the_authors_own_text_is_right_at_every_cursor():
    for each in (at.typed(letters) for at in read_cursors(CURSORS) for letters in situations.LETTERS):
        if rest := each.answers[0].partition("\n")[0].rstrip():
            assert situations.verdict(rest, each.answers) == "line"


def test_beginnings_count_what_is_wrong_and_what_leaves_a_bracket_open(tmp_path):
    path = tmp_path / "cursors.json"
    rows = [("a = re", ["sult"]), ("b = re", ["sult"]), ("c = re", ["sult"]), ("d = re", ["sult", "st"])]
    path.write_text(
        json.dumps([{"name": b[0], "path": "a.py", "before": b, "after": "\n", "expected": e} for b, e in rows])
    )
    editor = ScriptedEditor({"a = re": "sult(1", "b = re": "turned", "d = re": "st(1)"})
    record = situations.judge_beginnings(read_beginnings(path), editor)
    assert (record["cursors"], record["shown"], record["wrong"], record["left open"]) == (4, 3, 1, 1)
    assert [each["name"] for each in record["answers"] if each["wrong"]] == ["b"]


def test_the_table_of_beginnings_shows_brackets_as_they_are():
    answer = {"name": "a", "shown": "rows[key]", "wrong": True, "left open": False}
    record = {"cursors": 1, "shown": 1, "wrong": 1, "left open": 0, "answers": [answer]}
    console = Console(width=80)
    with console.capture() as printed:
        console.print(situations.beginnings_table(record))
    assert "rows[key]" in printed.get()


def test_a_list_without_right_beginnings_is_an_error(tmp_path):
    path = tmp_path / "cursors.json"
    path.write_text('[{"name": "a", "path": "a.py", "before": "", "after": ""}]')
    with pytest.raises(UsageError, match="expected"):
        read_beginnings(path)


@pytest.mark.slow
def test_the_suite_runs_a_server_and_writes_its_record(tmp_path, capfd):
    model, out = tiny.folder(tmp_path / "model"), tmp_path / "record.json"
    options = [
        "--model",
        str(model),
        "--corpus",
        str(CURSORS),
        "--limit",
        "3",
        "--eagerness",
        "high",
        "--out",
        str(out),
    ]
    assert situations.main([*options, "--json"]) == 0
    record = json.loads(capfd.readouterr().out)
    assert record == json.loads(out.read_text())
    assert record["letters"]["0"]["all"]["cursors"] == record["letters"]["2"]["all"]["cursors"] == 3
    assert record["model"] != "unknown"


@pytest.mark.slow
def test_a_model_that_does_not_load_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="cannot load its model"):
        situations.main(["--model", str(tmp_path / "none"), "--corpus", str(CURSORS), "--limit", "1"])
