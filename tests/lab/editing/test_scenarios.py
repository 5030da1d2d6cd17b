"""The scenarios of next edits that are in the repository, and what a careless one is refused for."""

from collections import Counter
from pathlib import Path

import pytest
from mercury_lab.editing.scenario_checks import faults, language
from mercury_lab.editing.scenarios import QUIET_KINDS, WANT_KINDS, Scenario, read_file, read_scenarios

from mercury_lsp.errors import UsageError

SCENARIOS = Path(__file__).parents[2] / "data" / "edits"

SUM = """\
==== file sum.py
def total(rows):
    found = 0
    for row in rows:
        found += row.price
    return found
"""


def listed(folder: Path, text: str, files: str = SUM) -> list[Scenario]:
    path = folder / "sum.edits"
    path.write_text(files + text, "utf-8")
    return read_file(path)


RENAMED = """\
==== rename rows
edit
-def total(rows):
+def total(lines):
want
-    for row in rows:
+    for row in lines:
"""


def test_the_scenarios_have_no_faults():
    assert faults(read_scenarios(SCENARIOS)) == []


def test_half_of_at_least_150_scenarios_ask_for_silence_and_nearly_all_of_these_have_a_history():
    found = read_scenarios(SCENARIOS)
    quiet = [each for each in found if each.is_quiet]
    assert len(found) >= 150
    assert 0.45 <= len(quiet) / len(found) <= 0.55
    assert sum(bool(each.edits) for each in quiet) >= 0.9 * len(quiet)


def test_ten_languages_have_at_least_ten_scenarios_of_either_sort():
    found = read_scenarios(SCENARIOS)
    counts = Counter((language(each), each.is_quiet) for each in found)
    assert (
        len([name for name in {language(each) for each in found} if min(counts[name, True], counts[name, False]) > 9])
        >= 10
    )


def test_every_kind_has_scenarios_and_some_have_several_files():
    found = read_scenarios(SCENARIOS)
    assert {each.kind for each in found} == {*WANT_KINDS, *QUIET_KINDS}
    assert sum(len(each.files) > 1 for each in found) > 50
    assert sum(any(want.path != each.edits[-1].path for want in each.wants) for each in found) > 10


def test_an_edit_is_made_and_the_next_one_is_wanted_behind_it(tmp_path):
    (found,) = listed(tmp_path, RENAMED)
    now = found.now["sum.py"]
    assert now.startswith("def total(lines):\n    found = 0\n    for row in rows:")
    assert found.wants[0].removed(found.now) == "    for row in rows:\n"
    assert "for row in lines:" in found.wants[0].apply(found.now)["sum.py"]
    assert now[found.cursor[1] :].startswith("):\n") and now[: found.cursor[1]].endswith("(lines")


def test_lines_that_are_kept_are_not_part_of_an_edit(tmp_path):
    (found,) = listed(
        tmp_path, "==== debug p\nedit\n     for row in rows:\n+        print(row)\n         found += row.price\n"
    )
    assert [(edit.start, edit.end, edit.text) for edit in found.edits] == [(3, 3, "        print(row)\n")]


def test_a_scenario_after_another_one_has_its_wants_as_history(tmp_path):
    _, found = listed(tmp_path, RENAMED + "==== done rows\nafter rows\n")
    assert len(found.edits) == 2 and found.is_quiet
    assert "rows" not in found.now["sum.py"]


def test_the_cursor_is_at_its_mark(tmp_path):
    (found,) = listed(tmp_path, "==== fresh sum\ncursor found +=‸ row.price\n")
    assert found.files["sum.py"][: found.cursor[1]].endswith("found +=")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("==== renamed a\nwant\n-x\n+y\n", "unknown kind 'renamed'"),
        ("==== rename\nwant\n", "a title of its own"),
        (RENAMED + RENAMED, "a title of its own"),
        ("==== rename a\nedit\n-def sum(rows):\n+def f():\n", "occur 0 times in sum.py; they must occur once"),
        ("==== rename a\nedit b.py\n-x\n+y\n", "no file 'b.py'"),
        ("==== rename a\nedit\n-def total(rows):\n+def f():\n", "rename needs a `want`"),
        (RENAMED.replace("rename", "done"), "done needs no `want`"),
        ("==== fresh a\nedit\n-def total(rows):\n+def f():\n", "only `fresh` has no edits"),
        ("==== done a\n", "only `fresh` has no edits"),
        ("==== done a\nafter b\n", "no earlier scenario 'b'"),
        ("==== done a\nedit\n     found = 0\n", "a hunk changes nothing"),
        ("==== rename a\nor\n-    found = 0\n+    found = 1\n", "no `want` before it"),
        ("==== rename a\nwish\n", "'wish' is no part; allowed: after, cursor, edit, or, want"),
        ("==== fresh a\ncursor found\n", "`cursor` needs one ‸"),
        ("==== fresh a\ncursor row‸\n", "occurs 0 times"),
        (RENAMED + "==== file b.py\nx\n", "a file follows a scenario"),
    ],
)
def test_a_careless_scenario_is_refused_with_its_line(tmp_path, text, message):
    with pytest.raises(UsageError, match=r"sum\.edits, line \d+: ") as caught:
        listed(tmp_path, text)
    assert message in str(caught.value)


def test_a_folder_without_scenarios_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no scenarios below"):
        read_scenarios(tmp_path)


def test_code_that_does_not_parse_is_a_fault(tmp_path):
    (found,) = faults(listed(tmp_path, RENAMED.replace("+    for row in lines:", "+    for row in lines(:")))
    assert found == "sum: rename rows: sum.py does not parse after the edit of line 3 (line 3)"


def test_a_scenario_that_is_there_twice_is_a_fault(tmp_path):
    twice = RENAMED + RENAMED.replace("rename rows", "rename again")
    assert len(faults(listed(tmp_path, twice))) == 2


def test_a_file_of_odd_size_is_a_fault(tmp_path):
    (found,) = faults(listed(tmp_path, "==== fresh a\n", files="==== file a.py\nx = 1\n"))
    assert found == "sum: a.py has 1 lines; 4 to 80 are read"
