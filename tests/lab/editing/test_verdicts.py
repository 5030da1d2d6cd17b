"""What a shown text is worth, by hand-made examples."""

import pytest
from mercury_lab.editing.verdicts import saved, verdict

ANSWERS = ("self.entries.append(entry)\n    return entry", "self.entries += [entry]")


@pytest.mark.parametrize(
    ("shown", "worth"),
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
def test_the_best_verdict_over_all_answers(shown, worth):
    assert verdict(shown, ANSWERS) == worth


def test_a_short_text_that_ends_the_line_is_no_stub():
    assert verdict("ult", ["ult"]) == "line"


def test_everything_is_wrong_where_nothing_can_be_right():
    assert verdict("x", []) == verdict("x", [""]) == "wrong"
    assert saved("x", []) == saved("x", [""]) == 0


def test_a_perfect_user_saves_the_right_words_of_a_wrong_text():
    assert saved("self.entries.append(line)", ANSWERS) == len("self.entries.append(")
    assert saved("other", ANSWERS) == 0


def test_no_more_is_saved_than_the_authors_line_has():
    assert saved("self.entries += [entry]", ["self", "self.entries += [entry]"]) == len("self")
