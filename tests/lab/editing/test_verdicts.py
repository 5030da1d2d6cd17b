"""What a shown text is worth, by hand-made examples."""

from pathlib import Path

import pytest
from mercury_lab.editing.cursors import Cursor
from mercury_lab.editing.verdicts import is_cut, leaves_open, saved, verdict

ANSWERS = ("self.entries.append(entry)\n    return entry", "self.entries += [entry]")


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        ("self.entries.append(entry)", "line"),
        ("self.entries += [entry]", "line"),
        ("self.entries.append(entry)\n    return entry", "line"),
        ("self.entries.append(entry)\n\n    return entry\n", "line"),
        ("self.entries.append(entry)\n    return None", "wrong"),
        ("self.entries.append(entry)\n    return entry\n    pass", "wrong"),
        ("self.entries.append", "part"),
        ("self.entries +=", "part"),
        ("self.", "stub"),
        ("self", "stub"),
        ("self.ent", "wrong"),
        ("self.entries\n    return entry", "wrong"),
        ("self.lines.append(entry)", "wrong"),
        ("self.entries.append(entry))", "wrong"),
    ],
)
def test_the_best_verdict_over_all_answers(shown, wanted):
    assert verdict(shown, ANSWERS) == wanted


@pytest.mark.parametrize(
    ("shown", "right", "cut"),
    [
        ("item.price", "item.price * item.count", True),
        ("item.price * item.count", "item.price * item.count", False),
        ('os.environ.get("USER"', "user", True),
        ("first", "first, second", True),
        ("if (ready) {", "if (ready) {", False),
    ],
)
def test_a_text_is_cut_where_it_stops_inside_an_expression(shown, right, cut):
    cursor = Cursor(Path("a.py"), "body", "total = ", "\n", (right,), False)
    assert is_cut(shown, cursor) == cut


@pytest.mark.parametrize(
    ("before", "shown", "after", "is_open"),
    [
        ("th", "is.backoff(job.attempts + 1", ";\n", True),
        ("open(p", 'ath, encoding="utf-8"', "\n", False),
        ("open(p", 'ath, encoding="utf-8', "\n", True),
        ("", "total(items", ")\n", False),
        ("", "if (ready) {", "\n", False),
        ("", "if (ready) {", " x\n", True),
        ("", "call({", "\n", True),
        ("", '"""Return it.', "\n", False),
        ('print("to', "tal", '")\n', False),
        ("f(", "g(x)", "\n", False),
    ],
)
def test_a_text_leaves_open_what_it_opens_and_nothing_closes(before, shown, after, is_open):
    assert leaves_open(shown, Cursor(Path("a.ts"), "body", "x\n" + before, after, (), False)) == is_open


def test_a_perfect_user_saves_the_right_words_of_a_wrong_text():
    assert saved("self.entries.append(line)", ANSWERS) == len("self.entries.append(")
    assert saved("other", ANSWERS) == 0
