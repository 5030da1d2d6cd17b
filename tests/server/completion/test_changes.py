"""The user's last change: which edits make it up, and when it is finished."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.next_edit_desk import RENAMED, NextEditDesk


def test_keys_that_touch_are_one_change():
    desk = NextEditDesk(RENAMED)
    desk.erase(desk.find("count"), 5).type(6, "total")
    assert desk.change() == ("count", "total")


def test_an_edit_elsewhere_starts_another_change():
    desk = NextEditDesk("def f(count):\n    x = 1\n    return x\n").replace("count", "total").replace("x = ", "xs = ")
    assert desk.change() == ("x", "xs")


@pytest.mark.parametrize(
    ("old", "new"), [("x = 1", "x = 2"), ("1\n", "1\ny = 2\n"), ("= 1", "== 1"), ("1", "1" * 100), ("x = 1\n", "")]
)
def test_numbers_punctuation_lines_and_long_texts_are_not_repeated(old, new):
    assert NextEditDesk("x = 1\n").replace(old, new).change() is None


def test_a_change_that_was_taken_back_is_not_repeated():
    desk = NextEditDesk(RENAMED).replace("count", "total")
    assert desk.change() == ("count", "total")
    assert desk.replace("total", "count").change() is None


def test_the_reverse_of_a_change_undoes_it():
    desk = NextEditDesk(RENAMED).replace("count", "total")
    assert desk.change() is not None
    desk.replace("count", "total")
    assert desk.change() is not None
    desk.put(desk.find("total"), "total", "count")  # the first site, which is not the last change
    assert desk.change() is None


def test_a_line_that_looks_like_a_secret_is_not_repeated():
    desk = NextEditDesk('password = "hunter2-Zq8!kPx"\npassword\n').replace("password", "pass_word")
    assert desk.change() is None


@pytest.mark.parametrize("behind", [", mode", " = 1, ", ":", ")\n"], ids=repr)
@pytest.mark.parametrize("at_once", [True, False])
def test_text_typed_after_a_renamed_word_is_no_part_of_its_change(behind, at_once):
    desk = NextEditDesk("def f(count, other):\n    return other\n")
    desk.erase(6, 5).type(6, "total")
    desk.put(11, "", behind) if at_once else desk.type(11, behind)
    assert desk.change() == ("count", "total")
    desk.replace("other", "another")
    assert desk.change() == ("other", "another")


def test_a_name_being_erased_or_retyped_is_unfinished_while_the_cursor_is_in_it():
    desk = NextEditDesk(RENAMED)
    for erased in range(1, 5):
        desk.put(11 - erased, desk.text[11 - erased], "")
        assert desk.is_unfinished(11 - erased)
    desk.put(6, "c", "")
    for typed, is_unfinished in (("c", True), ("o", True), ("p", False), ("y", False)):
        at = desk.find(",") if "," in desk.text else desk.find("):")
        desk.put(at, "", typed)
        assert desk.is_unfinished(at + 1) is is_unfinished
    desk.put(9, "y", "")
    assert desk.is_unfinished(9) and not desk.is_unfinished(0)


@given(st.lists(st.tuples(st.integers(0, 3), st.text("ab, \n", max_size=4)), max_size=8))
def test_the_places_of_a_renaming_move_with_text_that_is_typed_around_them(edits):
    desk = NextEditDesk("count = x\n" + "x(count)\n" * 2).replace("count", "total")
    desk.renaming()
    for number, typed in edits:
        at = desk.text.rfind("x", 0, 9 * number + 1)
        desk.put(max(0, at), "", typed + " ")
    assert [desk.snapshot.slice(each.start, each.end) for each in desk.renaming().left] == ["count"] * 2


@pytest.mark.parametrize("new", ["count", "total"])
def test_places_in_lines_that_are_replaced_whole_stay_places(new):
    desk = NextEditDesk("def f(count):\n    return count + count * count\n").replace("count", "total")
    assert len(desk.texts()) == 3
    desk.put(desk.find("    return"), "    return count + count * count\n", f"    return [{new} + {new} * count]\n")
    assert len(desk.texts()) == (3 if new == "count" else 1)
    assert desk.renaming().total == 4
