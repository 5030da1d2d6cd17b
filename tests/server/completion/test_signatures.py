"""A changed parameter list is followed where the new text is certain, and nowhere else."""

import pytest

from mercury_lsp.completion.next_edits.signatures import call_sites, signatures, unfit_calls
from tests.server.completion.test_by_example import ExampleDesk


def followed(desk: ExampleDesk, number: int = 0) -> list[str]:
    """The new texts of declarations and calls."""
    hunks, snapshot = desk.history.hunks(), desk.parsed(number)
    return [site.new for each in signatures(hunks, desk.parsed()) for site in call_sites(each, hunks, snapshot)]


PYTHON = """\
def load(path, strict, depth=1):
    return path


def use(name, depth):
    load(name, True)
    load(name, True, 2)
    load(name, strict=False)
    load(*name)
    x.unload(name, True, 3)
"""


@pytest.mark.parametrize(
    ("new", "calls"),
    [
        ("load(path, exact, depth=1)", ["load(name, exact=False)"]),
        ("load(path, depth=1)", ["load(name, 2)"]),
        ("load(strict, path, depth=1)", ["load(True, name, 2)"]),
        ("load(path, strict, depth=1, name=None)", []),
        ("load(path, strict, depth=1, size)", []),
    ],
    ids=["renamed", "removed", "moved", "with a default", "nothing to pass"],
)
def test_calls_follow_a_parameter_that_is(new: str, calls: list[str]):
    assert followed(ExampleDesk(a__py=PYTHON).replace("load(path, strict, depth=1)", new)) == calls


def test_a_new_parameter_is_passed_where_a_parameter_has_its_name():
    text = (
        "def load(path):\n    return path\n\ndef f(a, depth):\n    load(a)\n    load(a, 1)\n\ndef g(a):\n    load(a)\n"
    )
    assert followed(ExampleDesk(a__py=text).replace("load(path)", "load(path, depth)")) == ["load(a, depth)"]


def test_a_method_is_called_without_self():
    text = "class A:\n    def load(self, path, mode):\n        return path\n\nx.load(1, 2)\n"
    assert followed(ExampleDesk(a__py=text).replace("self, path, mode", "self, path")) == ["load(1)"]


def test_a_declaration_in_another_document_gets_the_same_list():
    header = "size_t fill(struct pump *p, int litres);\nsize_t spill(struct pump *p, int litres);\n"
    code = "size_t fill(struct pump *p, int litres)\n{\n    return litres;\n}\n"
    desk = ExampleDesk(pump__c=code, pump__h=header).replace("int litres)", "int litres, int speed)")
    assert followed(desk, 1) == ["fill(struct pump *p, int litres, int speed)"]


def test_an_overload_and_a_call_that_only_looks_like_the_list_stay():
    text = "int fill(int litres) { return litres; }\nint fill(long litres) { return fill(litres); }\n"
    desk = ExampleDesk(a__cpp=text).replace("fill(int litres)", "fill(int litres, int speed)")
    assert followed(desk) == []


def test_a_call_that_changed_is_no_signature():
    desk = ExampleDesk(a__py=PYTHON).replace("load(name, True)\n", "load(name, False)\n")
    assert followed(desk) == []


def test_what_a_clause_catches_is_passed_as_a_parameter_is():
    code = "class Q {\n  retry(job) {\n    job();\n  }\n  run(job) {\n    try {\n      job();\n"
    code += "    } catch (error) {\n      this.retry(job);\n    }\n    this.retry(job);\n  }\n}\n"
    assert followed(ExampleDesk(a__js=code).replace("retry(job) {", "retry(job, error) {")) == ["retry(job, error)"]


def unfit(desk: ExampleDesk, number: int = 0) -> list[str]:
    """The lines of calls that must change in an unknown way."""
    hunks, snapshot = desk.history.hunks(), desk.parsed(number)
    found = [at for each in signatures(hunks, desk.parsed()) for at in unfit_calls(each, hunks, snapshot)]
    return [snapshot.slice(*snapshot.source.line_bounds(at)).strip() for at in found]


def test_calls_that_no_longer_fit_wait_for_the_user():
    text = "def load(path, mode=1):\n    return path\n\nload(a)\nload(a, 2)\nload(path=a)\nload(*a)\n# load(a, 2)\n"
    assert unfit(ExampleDesk(a__py=text).replace("path, mode=1):", "path, mode, depth):")) == ["load(a, 2)"]
    assert unfit(ExampleDesk(a__py=text).replace("path, mode=1):", "path, mode=1, depth=2):")) == []
    assert unfit(ExampleDesk(a__py=text).replace("path, mode=1):", "path, depth=1):")) == []


def test_a_constructor_is_called_by_the_name_of_its_class():
    text = "class Invites:\n    def __init__(self, store):\n        self.store = store\n"
    desk = ExampleDesk(a__py=text, b__py="from a import Invites\n\nInvites(Store())\n")
    desk.replace("self, store)", "self, store, clock)")
    assert unfit(desk, 1) == ["Invites(Store())"]
    desk = ExampleDesk(a__py=text, b__py="from a import Invites\n\nInvites(Store())\n")
    assert followed(desk.replace("self, store)", "self)"), 1) == ["Invites()"]
