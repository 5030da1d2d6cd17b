"""Edits show whether a suggestion was accepted, wholly or partly, or typed."""

import pytest

from tests.support.statistics_desk import TEXT, URI, Desk, result


@pytest.fixture
def desk() -> Desk:
    return Desk()


# Accepted


def test_the_whole_text_inserted_at_once_is_accepted(desk: Desk):
    desk.show(TEXT)
    desk.insert(TEXT)
    assert result(desk.close()) == ("accepted", 8)


def test_a_replacement_of_the_word_or_line_before_the_cursor_is_the_same_as_an_insertion():
    desk = Desk("  pri")
    desk.show("nt(x)")
    desk.change(2, 3, "print(x)")
    assert result(desk.close()) == ("accepted", 5)


def test_accepting_the_remainder_after_typing_saves_only_the_remainder(desk: Desk):
    desk.show(TEXT)
    desk.type("va")
    desk.insert("lue(1)")
    assert result(desk.close()) == ("accepted", 6)


# Partly accepted


def test_a_word_at_once_is_partly_accepted(desk: Desk):
    desk.show(TEXT)
    desk.insert("value")
    assert result(desk.close()) == ("partly", 5)


def test_word_after_word_to_the_end_is_accepted(desk: Desk):
    desk.show("one two")
    desk.insert("one ")
    desk.insert("two")
    assert result(desk.close()) == ("accepted", 7)


# Typed


def test_typing_the_same_text_key_by_key_is_no_acceptance(desk: Desk):
    desk.show(TEXT)
    desk.type(TEXT)
    assert result(desk.close()) == ("typed", 0)


def test_keys_gathered_in_one_notification_are_keys(desk: Desk):
    desk.show(TEXT)
    desk.observer.edited(URI, [desk.edit(len(desk.text), 0, key) for key in TEXT])
    assert desk.close().outcome == "typed"


@pytest.mark.parametrize(("shown", "inserted"), [("()", "()"), ("\n    x", "\n    "), ("    x", "    ")], ids=repr)
def test_text_that_one_key_inserts_is_typed(desk: Desk, shown: str, inserted: str):
    desk.show(shown)
    desk.insert(inserted)
    assert desk.close().saved == 0
