"""The suite's figures by hand, the cursors that are in the repository, and the suite's commands."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from mercury_lab.editing import situations
from mercury_lab.editing.cursors import Cursor, read_beginnings
from mercury_lab.editing.editor import ShownSuggestion
from mercury_lab.intervals import wilson

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


def test_a_wilson_interval_is_that_of_the_tables():
    assert wilson(0, 0) is None
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)


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
