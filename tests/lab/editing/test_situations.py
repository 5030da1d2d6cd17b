"""The suite's figures by hand, the cursors that are in the repository, and the suite's commands."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from mercury_lab.editing import situations
from mercury_lab.editing.cursors import Cursor
from mercury_lab.editing.editor import ShownSuggestion

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
