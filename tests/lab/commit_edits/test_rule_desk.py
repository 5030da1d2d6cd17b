"""What rules alone show after a scenario's edits, without a server and a model."""

from mercury_lab.commit_edits.rule_desk import ask_rules
from mercury_lab.editing.line_edits import LineEdit, cursor_behind
from mercury_lab.editing.scenarios import Scenario


def asked(edits: tuple[LineEdit, ...], **texts: str) -> LineEdit | None:
    files = {name.replace("__", "."): text for name, text in texts.items()}
    return ask_rules(Scenario("a", "sibling", "test", files, edits, cursor_behind(files, edits), ())).edit


def test_what_was_done_twice_is_shown_in_the_file_and_in_the_next_one():
    edits = tuple(LineEdit("a.py", line, line + 1, f"f(x{line}.loose)\n") for line in (0, 1))
    text = "f(x0.strict)\nf(x1.strict)\n"
    assert asked(edits, a__py=text + "f(x2.strict)\n") == LineEdit("a.py", 2, 3, "f(x2.loose)\n")
    assert asked(edits, a__py=text, b__py="\ng(y.strict)\n") == LineEdit("b.py", 1, 2, "g(y.loose)\n")


def test_after_one_change_of_its_own_nothing_is_shown():
    assert asked((LineEdit("a.py", 0, 1, "f(x.loose)\n"),), a__py="f(x.strict)\nf(y.strict)\n") is None
