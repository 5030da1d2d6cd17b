"""Cursors are drawn by rule from files added since a date; the list has positions and no text."""

import json

import pytest
from mercury_lab.commit_edits import cursor_list
from mercury_lab.editing.drawn_cursors import LIST, PLACES, read_drawn

from tests.support.git_project import GitProject

MIT = "Permission is hereby granted, free of charge, to any person\n"

PYTHON = '''"""A module about nothing, which is long enough to be read."""


def total(prices, rebate):
    # the sum of all prices, less what is taken off
    full = sum(price.amount for price in prices)
    return full * (1 - rebate.as_fraction())
'''

LIST_ROWS = ("repository", "path", "place", "line", "column", "end_line", "end_column")


@pytest.fixture
def mirror(tmp_path):
    project = GitProject(tmp_path / "mirror" / "someone+toy")
    project.commit("Start", {"total.py": PYTHON, "broken.py": PYTHON + "def (\n", "notes.txt": PYTHON, "LICENSE": MIT})
    return tmp_path / "mirror"


def draw(mirror, tmp_path, *options):
    out = tmp_path / "drawn.json"
    names = ("--mirror", str(mirror), "--repositories", "someone/toy", "--out", str(out))
    assert cursor_list.main([*names, "--since", "2000-01-01", *options]) == 0
    return out


@pytest.mark.parametrize(
    ("place", "rights"),
    [
        (
            "whole line",
            {line.strip() for line in PYTHON.split("\n") if line.startswith(("def", "    full", "    return"))},
        ),
        ("argument list", {"prices, rebate", "price.amount for price in prices", "1 - rebate.as_fraction()"}),
        ("block", {PYTHON[PYTHON.index("# the") :].rstrip("\n")}),
    ],
)
def test_a_place_is_where_its_name_says(mirror, tmp_path, place, rights):
    (cursor,) = read_drawn(draw(mirror, tmp_path, "--places", place), mirror)
    assert cursor.answers[0] in rights
    assert cursor.before + cursor.answers[0] + cursor.after == PYTHON
    assert (cursor.place, cursor.path.name) == (place, "total.py")


def test_the_list_has_positions_and_no_text(mirror, tmp_path):
    record = json.loads(draw(mirror, tmp_path).read_text())
    assert [each["licence"] for each in record["repositories"]] == ["MIT"]
    assert all(set(row) == set(LIST_ROWS) and row["path"] == "total.py" for row in record["cursors"])


def test_the_lists_in_the_repository_are_drawn_as_promised():
    lines, blocks = PLACES[:3], PLACES[3:]
    lists = {"drawn": (150, lines), "unread": (480, lines), "blocks": (90, blocks), "siblings": (69, blocks)}
    for name, (count, places) in lists.items():
        record = json.loads(LIST.with_name(f"{name}.json").read_text())
        rows = record["cursors"]
        assert len(rows) >= count and {row["place"] for row in rows} == set(places)
        assert len({(row["repository"], row["path"]) for row in rows}) == len(rows)
        assert {row["repository"] for row in rows} == {each["name"] for each in record["repositories"]}
