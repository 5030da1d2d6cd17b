"""A misspelt name is corrected where it was typed, and never spread as a renaming."""

import pytest

from mercury_lsp.completion.next_edits.spelling import are_alike
from tests.support.next_edit_desk import NextEditDesk

CODE = """\
def area(width, height):
    longest = max(width, height)
    print(longest)
    return width * height
"""


def corrected(desk: NextEditDesk) -> tuple[int, str, str] | None:
    """Line, misspelt and right name of the correction."""
    snapshot = desk.document.parsed()
    found = desk.repeatable.correction(snapshot)
    return (snapshot.position_at(found.start)[0], found.old, found.new) if found else None


@pytest.mark.parametrize("slip", ["hieght", "heigth", "heght", "heigght"])
def test_a_use_that_became_misspelt_is_corrected(slip: str):
    assert corrected(NextEditDesk(CODE).replace("width * height", f"width * {slip}")) == (3, slip, "height")


def test_a_misspelt_name_in_new_code_is_corrected():
    desk = NextEditDesk(CODE)
    desk.type(desk.find("    return"), "    x = logest + width\n")
    assert corrected(desk) == (3, "logest", "longest")


def test_a_member_is_corrected_towards_a_member():
    desk = NextEditDesk("class A:\n    def f(self):\n        self.height = 1\n        return self.height\n")
    assert corrected(desk.replace("return self.height", "return self.hieght")) == (3, "hieght", "height")
    desk = NextEditDesk("def f(height, a):\n    return a.width, height\n").replace("a.width", "a.hieght")
    assert corrected(desk) is None


@pytest.mark.parametrize(
    "new",
    ["heights", "weight", "height2", "x_height", "depth"],
    ids=["plural", "another letter", "number", "part", "other word"],
)
def test_another_name_is_no_misspelling(new: str):
    assert corrected(NextEditDesk(CODE).replace("width * height", f"width * {new}")) is None


def test_a_name_that_is_introduced_is_not_corrected():
    assert corrected(NextEditDesk(CODE).replace("longest = max", "lognest = max")) is None
    assert corrected(NextEditDesk(CODE).replace("width, height", "width, hieght")) is None


def test_a_name_used_twice_is_meant():
    assert corrected(NextEditDesk(CODE).replace("width * height", "hieght * hieght")) is None


def test_a_name_that_the_user_wants_stays():
    desk = NextEditDesk(CODE).replace("width * height", "width * hieght")
    site = desk.repeatable.correction(desk.document.parsed())
    desk.repeatable.offer_correction("1", site)
    desk.repeatable.dismiss("1")
    assert corrected(desk) is None


def test_correcting_a_misspelt_use_offers_the_other_misspelt_uses_only():
    text = CODE.replace("max(width, height)", "max(width, hieght)").replace("* height", "* hieght")
    desk = NextEditDesk(text).replace("max(width, hieght)", "max(width, height)")
    assert corrected(desk) is None
    assert desk.texts() == [("hieght", "height")] and desk.lines() == [3]


def test_a_misspelling_of_a_declared_name_is_still_a_choice_between_two_names():
    text = "def f(height, hieght):\n    print(hieght)\n    print(hieght)\n"
    assert NextEditDesk(text).replace("print(hieght)", "print(height)").lines() == []


@pytest.mark.parametrize(
    ("one", "other"), [("form", "from"), ("items", "item"), ("text1", "txet1"), ("width", "width"), ("abcde", "badce")]
)
def test_short_numbered_and_equal_names_are_not_alike(one: str, other: str):
    assert not are_alike(one, other)
