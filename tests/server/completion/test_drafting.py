"""Drafts: how a line of an open document continues the cursor's line."""

import pytest

from tests.support.draft_desk import FAR, DraftDesk


def draft(text: str, *others: str) -> str:
    """The draft at the bar, with other documents opened first."""
    desk = DraftDesk()
    for number, other in enumerate(others):
        desk.open(other, f"file:///other{number}.py")
    desk.open(text.replace("|", "", 1))
    return desk.draft(text.index("|"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("total = compute(first, second)\ntotal = compute(|\n", "first, second)"),
        ("total = compute(first, second)\ntotal = comp|\n", "ute(first, second)"),
        ("total = compute(first, second)\nother = [compute|\n", "(first, second)"),
        ("total = compute(first, second)\ntotal =|\n", " compute(first, second)"),
        ("total=compute(first,second)\n    total = |\n", "compute(first,second)"),
        ("return None\nretu|", "rn None"),
        ("\twhile (ready) {\n  while (|", "ready) {"),
    ],
)
def test_a_line_continues_like_a_similar_line_whatever_its_blanks(text: str, expected: str):
    assert draft(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("self.width = width\nself.height = |", "height"),
        ("self.width = width\nself.height = he|", "ight"),
        ("def get_width(self): return self._width\ndef get_height(|", "self): return self._height"),
        ("self.MAX_WIDTH = Limits(width=3)\nself.MAX_HEIGHT = |", "Limits(height=3)"),
        ("layer1 = build(options[1], 10)\nlayer2 = build(|", "options[2], 10)"),
        (
            "def set_width(self, width):\n    self._width = width\n\ndef set_height(self, height):\n    self.|",
            "_height = height",
        ),
    ],
)
def test_systematic_renamings_are_applied_to_the_draft(text: str, expected: str):
    assert draft(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "|",
        "x = 1\nx = |",
        "foo(bar)\nfo|",
        "))) + 1\n))) |",
        "total = compute(first)\nsomething.else_(|",
        "total = compute(first)\ntotal = consider|",
        "total = compute(first)\ntotal = compute(first)|",
        "total = compute(first)\ntotal = comp|ute(first)",
    ],
    ids=["empty", "too short", "three letters", "punctuation only", "not alike", "other word", "line ends", "own line"],
)
def test_nothing_is_drafted_when_no_line_matches_well(text: str):
    assert draft(text) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("total = compute(first, second)\ntotal = compute(|)", "first, second"),
        ("total = compute(first, second)\nprint(compute(|))", "first, second"),
        ("if compute(first[0], second):\nif compute(|):", "first[0], second"),
        ("print(compute(first))\ntotal = compute(|", "first)"),
        ("    first, second))\nprint(first, |", "second))"),
        ("total = compute(first, second)\ntotal = compute(| * 3", ""),
    ],
)
def test_the_draft_fits_the_brackets_and_suffix_of_the_cursors_line(text: str, expected: str):
    assert draft(text) == expected


def test_the_line_under_the_cursor_is_never_its_own_draft():
    assert draft("compute(first) + compute(|\n") == ""
    assert draft("compute(first) + compute(|\n", "compute(second)\n") == "second)"


def test_the_longest_match_beats_a_near_one():
    text = "self.total = compute(far, away)\n" + FAR + "compute(near)\nself.total = compute(|\n"
    assert draft(text) == "far, away)"


def test_among_equals_near_lines_beat_the_same_document_which_beats_others():
    near, far, other = ("value = load(near)\n", "value = load(far)\n", "value = load(other)\n")
    assert draft(far + FAR + near + "value = load(|", other) == "near)"
    assert draft(far + FAR + "value = load(|", other) == "far)"
    assert draft(FAR + "value = load(|", other) == "other)"


def test_among_other_documents_the_one_edited_last_wins():
    desk = DraftDesk()
    desk.open(FAR + "value = load(own)\n" + FAR + "value = load(")
    for name in ("a", "b", "c"):
        desk.open(f"value = load({name})\nvalue = store({name})\n" + FAR, name)
    for name in ("a", "b"):
        desk.replace(len(desk.text(name)), len(desk.text(name)), "x = 1", name)
    assert desk.draft(len(desk.text())) == "own)"
    desk.replace(len(desk.text()) - len("load("), len(desk.text()), "store(")
    assert desk.draft(len(desk.text())) == "b)"


def test_among_equals_a_match_from_the_start_of_the_line_wins():
    assert draft("compute(first)\n" + FAR + "x.compute(second)\ncompute(|\n") == "first)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("for key in table:\n    print(key)\n" + FAR + "for key in table:\n    |\n", "print(key)"),
        ("for key in table:\n    print(key)\n" + FAR + "  for key in table:\n|\n", "      print(key)"),
        ("    done = True\nreturn done\n" + FAR + "        done = True\n\n    |", "return done"),
        ("for key in table:\n    print(key)\n" + FAR + "for key in table:\n        |\n", ""),
        ("for key in table:\n    print(key)\n" + FAR + "for key in table:\n    |\n    print(key)\n", ""),
        ("for key in table:\n    print(key)\n" + FAR + "for other in table:\n    |\n", ""),
        ("for key in table:\n    print(key)\n\nfor other in table:\n    |\n", "print(other)"),
        ("for key in table:\n    print(1)\n\nfor other in table:\n    |\n", ""),
        ("def set_width(self):\n    return self.width\n\ndef set_height(self):\n    |", "return self.height"),
    ],
    ids=[
        "indented",
        "blanks lacking",
        "dedented",
        "indented deeper",
        "there already",
        "far",
        "other name",
        "name not used",
        "in part",
    ],
)
def test_a_blank_line_is_drafted_from_below_a_line_like_the_one_above(text: str, expected: str):
    assert draft(text) == expected
