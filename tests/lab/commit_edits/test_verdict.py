"""An edit is useful if it does something that the rest of the commit does, and nothing else."""

import pytest
from mercury_lab.commit_edits.verdict import Verdict, is_on_the_way, judge
from mercury_lab.editing.line_edits import LineEdit
from mercury_lab.editing.scenarios import Scenario

TEXT = "var a = f(1);\nvar b = f(2);\nvar c = f(3);\nreturn a;\n"

WANTS = (
    LineEdit("a.js", 1, 2, "const b = g(2);\n"),
    LineEdit("a.js", 2, 3, "const c = f(3);\n"),
    LineEdit("a.js", 3, 3, "log(a);\nlog(b);\nlog(c);\n"),
)


def verdict(start: int, end: int, text: str, wants=WANTS, cursor: int = 0) -> Verdict:
    at = Scenario("a", "sibling", "x", {"a.js": TEXT}, (), ("a.js", cursor), tuple(wants))
    return judge(at, LineEdit("a.js", start, end, text))


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        (1, 2, "const b = g(2);\n"),  # one of the changes
        (1, 3, "const b = g(2);\nconst c = f(3);\n"),  # two of them at once
        (0, 3, "var a = f(1);\nconst b = g(2);\nvar c = f(3);\n"),  # with lines that stay
    ],
)
def test_whole_changes_of_the_commit_are_exact(start, end, text):
    assert verdict(start, end, text) == Verdict(True, True)


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        (1, 2, "const b = h(2);\n"),  # a replacement too many
        (1, 2, "b = f(2);\n"),  # half of a replacement
        (1, 2, "var b = (2);\n"),  # the other one's half
        (0, 1, "const a = f(1);\n"),  # a line that the commit leaves
        (3, 3, "log(\n"),  # a piece of a line
        (3, 3, "log(a);\nlog(d);\n"),  # a right line and a wrong one
        (2, 3, ""),  # a line that the commit changes is gone
    ],
)
def test_what_the_commit_does_not_do_is_wrong(start, end, text):
    assert verdict(start, end, text) == Verdict()


def test_where_a_line_is_begun_its_continuation_may_end_early_if_it_is_long_enough():
    text = "var a = f(1);\ncon\n"
    target = "var a = f(1);\nconst entries = load(name, options);\n"
    assert not is_on_the_way(text, "var a = f(1);\ncon = load(name\n", target)
    begun = "var a = f(1);\nconst \n"
    assert is_on_the_way(begun, "var a = f(1);\nconst entries = load(\n", target, is_begun=True)
    assert not is_on_the_way(begun, "var a = f(1);\nconst entries = load(\n", target)
    assert not is_on_the_way(begun, "var a = f(1);\nconst entries\n", target, is_begun=True)
