"""The figures of next edits by hand, edits typed key by key, and the suite's command."""

import json
from pathlib import Path

import pytest
from mercury_lab.editing import edits
from mercury_lab.editing.edit_desk import Answer
from mercury_lab.editing.line_edits import LineEdit, keystrokes
from mercury_lab.editing.scenarios import Scenario, read_scenarios

from tests.support import tiny

SCENARIOS = Path(__file__).parents[2] / "data" / "edits"

TEXT = "def f(rows):\n    a = rows[0]\n    b = rows[1]\n    return a\n"

FIRST, SECOND = (LineEdit("a.py", n, n + 1, f"    {name} = lines[{n - 1}]\n") for n, name in ((1, "a"), (2, "b")))

HISTORY = LineEdit("a.py", 0, 1, "def f(lines):\n")


def renamed(*wants: LineEdit, source: str = "a") -> Scenario:
    return Scenario(source, "rename", "x", {"a.py": TEXT}, (HISTORY,), ("a.py", 0), wants)


def shown(at: Scenario, edit: LineEdit | None) -> edits.Judged:
    return edits.judged(at, Answer(edit, 10.0))


def test_the_score_is_character_f_times_the_harmonic_mean_of_show_and_quiet():
    wanted, quiet = renamed(FIRST), renamed()
    found = [shown(wanted, FIRST), shown(wanted, None), shown(quiet, None), shown(quiet, FIRST), shown(quiet, None)]
    figures = edits.figures(found, 0)
    assert figures["show"]["share"] == figures["exact"]["share"] == figures["right_place"]["share"] == 0.5
    assert figures["quiet_with_history"]["share"] == pytest.approx(2 / 3)
    assert figures["score"]["mean"] == pytest.approx(0.5 * (2 * 0.5 * (2 / 3)) / (0.5 + 2 / 3))
    assert (figures["ms_p50"], figures["ms_p95"]) == (10, 10)


def test_keystrokes_make_the_edit():
    for at in read_scenarios(SCENARIOS)[::9]:
        files = dict(at.files)
        for edit in at.edits:
            text = files[edit.path]
            for start, end, typed in keystrokes(text, edit):
                text = text[:start] + typed + text[end:]
            files = edit.apply(files)
            assert text == files[edit.path]


@pytest.mark.slow
def test_the_suite_asks_a_server_both_ways_and_writes_its_record(tmp_path, capfd):
    out = tmp_path / "edits.json"
    model = tiny.folder(tmp_path / "model")
    options = ["--model", str(model), "--limit", "2", "--threads", "1", "--out", str(out)]
    assert edits.main([*options, "--json"]) == 0
    record = json.loads(capfd.readouterr().out)
    assert record == json.loads(out.read_text())
    assert {way: groups["all"]["quiet"] for way, groups in record["ways"].items()} == {"unasked": 1, "by key": 1}
    assert record["models"]["server"] != "unknown"
