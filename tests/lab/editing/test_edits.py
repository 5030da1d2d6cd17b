"""The figures of next edits by hand, edits typed key by key, and the suite's command."""

import json
from pathlib import Path

import pytest
from mercury_lab.editing import edits
from mercury_lab.editing.edit_desk import Answer, Jump, offset_of, position
from mercury_lab.editing.edit_figures import Verdict, bootstrap, judge, narrowed
from mercury_lab.editing.line_edits import LineEdit, keystrokes, line_edit
from mercury_lab.editing.scenarios import Scenario, read_scenarios

from tests.support import tiny

SCENARIOS = Path(__file__).parents[2] / "data" / "edits"

TEXT = "def f(rows):\n    a = rows[0]\n    b = rows[1]\n    return a\n"

FIRST, SECOND = (LineEdit("a.py", n, n + 1, f"    {name} = lines[{n - 1}]\n") for n, name in ((1, "a"), (2, "b")))

HISTORY = LineEdit("a.py", 0, 1, "def f(lines):\n")


def renamed(*wants: LineEdit, source: str = "a") -> Scenario:
    return Scenario(source, "rename", "x", {"a.py": TEXT}, (HISTORY,), ("a.py", 0), wants)


def verdict(edit: LineEdit, *wants: LineEdit):
    at = renamed(*wants)
    return judge(at, at.now, edit)


def shown(at: Scenario, edit: LineEdit | None) -> edits.Judged:
    return edits.judged(at, Answer(edit, 10.0))


def test_any_of_several_wanted_edits_is_right():
    for edit in (FIRST, SECOND):
        assert verdict(edit, FIRST, SECOND) == Verdict(True, True, 1.0)


def test_several_wanted_edits_at_once_are_exact_too():
    both = LineEdit("a.py", 1, 3, FIRST.text + SECOND.text)
    assert verdict(both, FIRST, SECOND) == Verdict(True, True, 1.0)


def test_an_edit_elsewhere_is_worth_nothing():
    assert verdict(LineEdit("a.py", 3, 4, "    return lines\n"), FIRST) == Verdict()


def test_lines_that_an_answer_repeats_do_not_count_as_its_place():
    whole = LineEdit("a.py", 0, 4, "def f(lines):\n    a = rows[0]\n    b = rows[1]\n    return lines\n")
    assert verdict(whole, FIRST) == Verdict()


def test_an_answer_that_changes_nothing_is_worth_nothing():
    same = LineEdit("a.py", 1, 2, "    a = rows[0]\n")
    assert narrowed(renamed().now, same) is None
    assert verdict(same, FIRST) == Verdict()


def test_character_f_counts_removed_and_inserted_characters():
    # right: 4 removed (rows), 5 inserted (lines); shown: the same, and 1 removed (0), 2 inserted (12)
    found = verdict(LineEdit("a.py", 1, 2, "    a = lines[12]\n"), FIRST)
    assert found.right_place and not found.exact
    assert found.character_f == pytest.approx(2 * 9 / (9 + 12))


def jumped(at: Scenario, line: int | None) -> edits.Judged:
    return edits.judged(at, Answer(None, 10.0, None if line is None else Jump("a.py", line)))


def test_a_jump_is_right_at_most_three_lines_from_a_right_edit():
    late = LineEdit("a.py", 9, 10, "x\n")
    assert [line for line in range(20) if jumped(renamed(late), line).jumps_right] == [6, 7, 8, 9, 10, 11, 12]
    assert not edits.judged(renamed(late), Answer(None, 1.0, Jump("b.py", 9))).jumps_right


def test_jumps_count_apart_from_edits():
    late, quiet = renamed(LineEdit("a.py", 9, 10, "x\n")), renamed()
    found = edits.figures(
        [jumped(late, 9), jumped(late, 2), jumped(late, None), jumped(quiet, 5), jumped(quiet, None)], 0
    )
    shares = {name: found[name]["share"] for name in ("show", "right_place", "jump_right", "right_place_or_jump")}
    assert shares == {"show": 0.0, "right_place": 0.0, "jump_right": 1 / 3, "right_place_or_jump": 1 / 3}
    assert found["right_of_jumps"]["share"] == 1 / 3
    assert (found["quiet_with_history"]["share"], found["quiet_without_jump"]["share"]) == (1.0, 0.5)


def test_blanks_at_the_end_of_a_line_are_no_difference():
    assert verdict(LineEdit("a.py", 1, 2, "    a = lines[0]  \n"), FIRST).exact


def test_run_on_text_costs_characters():
    found = verdict(LineEdit("a.py", 1, 2, FIRST.text + "    print(a)\n" * 9), FIRST)
    assert found.right_place and found.character_f < 0.3


def test_the_score_is_character_f_times_the_harmonic_mean_of_show_and_quiet():
    wanted, quiet = renamed(FIRST), renamed()
    found = [shown(wanted, FIRST), shown(wanted, None), shown(quiet, None), shown(quiet, FIRST), shown(quiet, None)]
    figures = edits.figures(found, 0)
    assert figures["show"]["share"] == figures["exact"]["share"] == figures["right_place"]["share"] == 0.5
    assert figures["quiet_with_history"]["share"] == pytest.approx(2 / 3)
    assert figures["score"]["mean"] == pytest.approx(0.5 * (2 * 0.5 * (2 / 3)) / (0.5 + 2 / 3))
    assert (figures["ms_p50"], figures["ms_p95"]) == (10, 10)


def test_always_silent_and_always_loud_score_nothing():
    wanted, quiet = renamed(FIRST), renamed()
    assert edits.score([shown(wanted, None), shown(quiet, None)]) == 0
    assert edits.score([shown(wanted, FIRST), shown(quiet, FIRST)]) == 0


def test_figures_of_nothing_are_none():
    figures = edits.figures([], 0)
    assert figures["score"] == {"mean": None, "interval": None}
    assert figures["exact"]["share"] is figures["ms_p50"] is None


def test_an_interval_draws_whole_sources():
    one = [renamed(FIRST, source="a")] * 50
    two = [*one, *[renamed(FIRST, source="b")] * 50]

    def share(found):
        return sum(each.source == "a" for each in found) / len(found)

    assert bootstrap(one, lambda each: each.source, share, 0) == (1.0, 1.0)
    assert bootstrap(two, lambda each: each.source, share, 0) == (0.0, 1.0)


def test_a_limit_keeps_half_of_the_positions_quiet():
    many = [renamed(FIRST, source=str(n)) if n % 3 else renamed(source=str(n)) for n in range(30)]
    assert [each.is_quiet for each in edits.spread(many, 8)].count(True) == 4
    assert edits.spread(many, None) == many


def test_keystrokes_make_the_edit():
    for at in read_scenarios(SCENARIOS)[::9]:
        files = dict(at.files)
        for edit in at.edits:
            text = files[edit.path]
            for start, end, typed in keystrokes(text, edit):
                text = text[:start] + typed + text[end:]
            files = edit.apply(files)
            assert text == files[edit.path]


def test_a_changed_word_is_erased_and_typed_key_by_key():
    assert [typed for _, _, typed in keystrokes(TEXT, HISTORY)] == ["", *"lines"]


def test_a_shown_span_becomes_whole_lines():
    edit = line_edit("a.py", TEXT, TEXT.index("rows[0]"), TEXT.index("rows[0]") + 4, "lines")
    assert edit == FIRST


def test_columns_count_utf_16_units():
    text = "a\n😀b\n"
    assert position(text, 4) == {"line": 1, "character": 3}
    assert offset_of(text, {"line": 1, "character": 3}) == 4
    assert offset_of(text, {"line": 9, "character": 0}) == len(text)


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
