"""The scenarios of next edits that are in the repository, and what a careless one is refused for."""

from pathlib import Path

import pytest
from mercury_lab.editing.scenarios import Scenario, read_file, read_scenarios

from mercury_lsp.documents.languages import language_of, new_parser
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


def test_all_code_of_the_scenarios_parses_but_where_the_user_is_in_the_middle_of_a_change():
    broken = []
    for each in read_scenarios(SCENARIOS):
        done = [] if each.kind in ("complete", "rewrite") else [each.now]
        for files in (each.files, *done, *(want.apply(each.now) for want in each.wants)):
            trees = {path: new_parser(language_of(path)).parse(text.encode()) for path, text in files.items()}
            broken += [(each.name, path) for path, tree in trees.items() if tree.root_node.has_error]
    assert broken == []


def test_an_edit_is_made_and_the_next_one_is_wanted_behind_it(tmp_path):
    (found,) = listed(tmp_path, RENAMED)
    now = found.now["sum.py"]
    assert now.startswith("def total(lines):\n    found = 0\n    for row in rows:")
    assert found.wants[0].removed(found.now) == "    for row in rows:\n"
    assert "for row in lines:" in found.wants[0].apply(found.now)["sum.py"]
    assert now[found.cursor[1] :].startswith("):\n") and now[: found.cursor[1]].endswith("(lines")


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
