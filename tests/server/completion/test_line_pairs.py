"""A replacement made in two lines beside each other is made again in the next line, and nowhere else."""

import pytest

from mercury_lsp.completion.next_edits.line_pairs import next_lines
from tests.server.completion.test_by_example import ExampleDesk

LINES = {
    "a keyword": ("js", "var a = 1;\nvar b = f(2);\nvar c = [3];\nvar d = 4;\n", "var ", "const "),
    "a mark": ("html", "<p>a = 1</p>\n<p>b = 2</p>\n<p>c = 3</p>\n", "=", "&lt;"),
    "a name": ("py", "self.assertIn(a)\nself.assertIn(b)\nself.assertIn(c)\n", "assertIn", "assertNotIn"),
}


def offered(desk: ExampleDesk) -> list[tuple[int, str, str]]:
    snapshot = desk.parsed()
    found = [site for _, site in next_lines(desk.history.hunks(), snapshot)]
    return [(snapshot.source.line_of(site.start), site.old, site.new) for site in found]


@pytest.mark.parametrize(("language", "text", "old", "new"), LINES.values(), ids=LINES)
def test_the_third_line_follows_two(language, text, old, new):
    desk = ExampleDesk(**{f"a__{language}": text}).replace(old, new)
    assert offered(desk) == []
    assert offered(desk.replace(old, new)) == [(2, old.strip(), new.strip())]


def test_a_line_between_two_is_passed_over_and_an_older_pair_is_forgotten():
    desk = ExampleDesk(a__js="var a;\nvar b;\n\nvar c;\nx = 1;\n").replace("var", "let").replace("var", "let")
    assert offered(desk) == [(3, "var", "let")]
    assert offered(desk.replace("x = 1", "x = 2")) == []


@pytest.mark.parametrize("third", ["// var c;", "x = var;", "", "let c;"])
def test_other_lines_are_left_alone(third):
    desk = ExampleDesk(a__js=f"var a;\nvar b;\n{third}\n").replace("var", "const").replace("var", "const")
    assert offered(desk) == []


def test_two_lines_that_changed_otherwise_are_no_examples():
    desk = ExampleDesk(a__js="var a;\nvar b;\nvar c;\n").replace("var a", "let a").replace("var b", "const b")
    assert offered(desk) == []
