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


def test_a_record_has_the_request_details(desk: Desk):
    desk.observer.client, desk.observer.model = "Neovim", "bundled"
    request = desk.observer.requested(URI, 4, "rust", automatic=False)
    desk.observer.answered(request, [desk.suggestion(TEXT)])
    record = desk.close()
    assert (record.language, record.client, record.model, record.automatic) == ("rust", "Neovim", "bundled", False)
    assert (record.confidence, record.length) == (0.8, 8) and 0 < record.latency_ms < 60_000


def test_asked_by_key_where_nothing_was_shown_unasked_the_time_is_that_of_the_key(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    seconds = iter((10.0, 60.0, 60.5))
    monkeypatch.setattr("mercury_lsp.statistics.impression.monotonic", lambda: next(seconds))
    desk.observer.answered(desk.observer.requested(URI, 4, "python", automatic=True), [])
    desk.observer.answered(desk.observer.requested(URI, 4, "python", automatic=False), [desk.suggestion(TEXT)])
    record = desk.close()
    assert (record.automatic, record.latency_ms) == (False, 500)


def test_the_answer_of_one_feature_counts_where_another_had_none_at_the_same_place(desk: Desk):
    ghost, popup = (desk.observer.requested(URI, 4, "python", automatic=True) for _ in range(2))
    desk.observer.answered(ghost, [])
    desk.observer.answered(popup, [desk.suggestion(TEXT)])
    desk.insert(TEXT)
    assert result(desk.close()) == ("accepted", 8)


def test_several_changes_of_one_notification_are_one_acceptance(desk: Desk):
    desk.show("if x:\n    return y")
    pieces = [desk.edit(len(desk.text), 0, piece) for piece in ("if x:", "\n", "    ", "return y")]
    desk.observer.edited(URI, pieces)
    assert result(desk.close()) == ("accepted", 18)


def test_changes_may_come_from_the_bottom_up(desk: Desk):
    desk.show("a = 1\nb = 2")
    desk.observer.edited(URI, [desk.edit(4, 0, "\nb = 2"), desk.edit(4, 0, "a = 1")])
    assert desk.close().outcome == "accepted"


def test_a_replacement_of_the_word_or_line_before_the_cursor_is_the_same_as_an_insertion():
    desk = Desk("  pri")
    desk.show("nt(x)")
    desk.change(2, 3, "print(x)")
    assert result(desk.close()) == ("accepted", 5)


def test_a_replacement_may_take_in_the_rest_of_the_line():
    desk = Desk("b = 2")
    desk.show("b = 1\n", at=0)
    desk.change(0, 5, "b = 1\nb = 2")
    assert result(desk.close()) == ("accepted", 6)


def test_accepting_the_remainder_after_typing_saves_only_the_remainder(desk: Desk):
    desk.show(TEXT)
    desk.type("va")
    desk.insert("lue(1)")
    assert result(desk.close()) == ("accepted", 6)


def test_the_client_may_insert_the_documents_line_breaks(desk: Desk):
    desk.show("a = 1\nb = 2")
    desk.insert("a = 1\r\nb = 2")
    assert result(desk.close()) == ("accepted", 11)


def test_astral_characters_count_as_one(desk: Desk):
    desk.show('"😀𝒳"')
    desk.insert('"😀𝒳"')
    assert result(desk.close()) == ("accepted", 4)


def test_the_client_may_indent_as_it_likes(desk: Desk):
    desk.show("if x:\n    return y")
    desk.insert("if x:\n\t\treturn y")
    assert desk.close().outcome == "accepted"


def test_the_client_may_reformat_in_the_same_notification(desk: Desk):
    desk.show("f('a')")
    edits = [desk.edit(4, 0, "f('a')"), desk.edit(6, 1, '"'), desk.edit(8, 1, '"')]
    desk.observer.edited(URI, edits)
    assert desk.close().outcome == "accepted"


def test_the_client_may_close_a_bracket_after_it(desk: Desk):
    desk.show("f(value")
    desk.insert("f(value)")
    assert desk.close().outcome == "accepted"


def test_alternatives_count_as_one_acceptance(desk: Desk):
    desk.show("a = 1\nb = 2", "a = 1", automatic=False)
    desk.insert("a = 1")
    assert result(desk.close()) == ("accepted", 5)


def test_with_many_cursors_only_the_requests_place_counts(desk: Desk):
    desk.text = "x = \ny = \nz = "
    desk.show(TEXT, at=9)
    desk.observer.edited(URI, [desk.edit(at, 0, TEXT) for at in (14, 9, 4)])
    assert result(desk.close()) == ("accepted", 8)


def test_typing_with_many_cursors_is_typing(desk: Desk):
    desk.text = "x = \ny = "
    desk.show(TEXT, at=9)
    for key, (first, second) in {"v": (4, 10), "a": (5, 12)}.items():
        desk.observer.edited(URI, [desk.edit(first, 0, key), desk.edit(second, 0, key)])
    desk.insert("lue(1)")
    assert result(desk.close()) == ("accepted", 6)


def test_an_edit_far_away_decides_nothing(desk: Desk):
    desk.show(TEXT)
    desk.insert("import os\n", at=0)
    desk.insert(TEXT)
    assert result(desk.close()) == ("accepted", 8)


# Partly accepted


def test_a_word_at_once_is_partly_accepted(desk: Desk):
    desk.show(TEXT)
    desk.insert("value")
    assert result(desk.close()) == ("partly", 5)


def test_word_after_word_adds_up(desk: Desk):
    desk.show("one two three")
    for word in ("one ", "two"):
        desk.insert(word)
    assert result(desk.close()) == ("partly", 7)


def test_word_after_word_to_the_end_is_accepted(desk: Desk):
    desk.show("one two")
    desk.insert("one ")
    desk.insert("two")
    assert result(desk.close()) == ("accepted", 7)


def test_a_line_at_once_is_partly_accepted_and_text_typed_after_is_not_saved(desk: Desk):
    desk.show("a = 1\nb = 2")
    desk.insert("a = 1")
    desk.type("\nc")
    assert result(desk.close()) == ("partly", 5)


def test_showing_the_remainder_makes_no_second_impression(desk: Desk):
    desk.show(TEXT, name="one")
    desk.insert("value")
    desk.show("(1)", name="one")
    desk.insert("(1)")
    assert result(desk.close()) == ("accepted", 8)


# Typed


def test_typing_the_same_text_key_by_key_is_no_acceptance(desk: Desk):
    desk.show(TEXT)
    desk.type(TEXT)
    assert result(desk.close()) == ("typed", 0)


def test_keys_gathered_in_one_notification_are_keys(desk: Desk):
    desk.show(TEXT)
    desk.observer.edited(URI, [desk.edit(len(desk.text), 0, key) for key in TEXT])
    assert desk.close().outcome == "typed"


def test_keys_gathered_with_an_acceptance_are_not_saved(desk: Desk):
    """Neovim gathers changes before it sends them."""
    desk.show(TEXT)
    desk.observer.edited(URI, [desk.edit(len(desk.text), 0, piece) for piece in ("v", "a", "lue(1)")])
    assert result(desk.close()) == ("accepted", 6)


@pytest.mark.parametrize(("shown", "inserted"), [("()", "()"), ("\n    x", "\n    "), ("    x", "    ")], ids=repr)
def test_text_that_one_key_inserts_is_typed(desk: Desk, shown: str, inserted: str):
    desk.show(shown)
    desk.insert(inserted)
    assert desk.close().saved == 0


def test_typing_beyond_the_end_leaves_it_typed(desk: Desk):
    desk.show("abc")
    desk.type("abcdef")
    assert desk.close().outcome == "typed"


def test_a_correction_is_not_counted_twice(desk: Desk):
    desk.show("abc")
    desk.type("ab")
    desk.change(len(desk.text) - 1, 1, "")
    desk.type("bc")
    assert result(desk.close()) == ("typed", 0)
