"""Slots are settled, reopened where the text is wrong, and shown."""

import pytest
from mercury_engine.denoising.canvas import Canvas, Vocabulary

VOCABULARY = Vocabulary(["", "ret", "urn", " x", " +", " y"], mask_id=6, end_id=7)


def filled(begun: str = "") -> Canvas:
    """`return x + y`, with the first token known from the start if no word was begun."""
    canvas = Canvas(VOCABULARY, [6] * 8, 0, begun)
    for token in (1, 2, 3, 4, 5, 7):
        canvas.settle(token, 0.5)
    return canvas


def test_the_end_marker_ends_the_canvas_and_is_no_slot():
    canvas = filled()
    assert canvas.ended
    assert VOCABULARY.spelled(canvas.ids) == "return x + y"
    assert canvas.confidence == pytest.approx(0.5**6)


def test_forced_spelling_costs_no_confidence():
    assert filled("retu").confidence == pytest.approx(0.5**5)
    assert filled("return").confidence == pytest.approx(0.5**4)


def test_slots_behind_a_wrong_character_are_masked_again_and_its_token_is_banned():
    canvas = filled()
    canvas.reopen(9)
    assert not canvas.ended
    assert canvas.ids == [1, 2, 3, 6, 6, 6, 6, 6]
    assert canvas.banned == {3: 4}
    assert canvas.confidence == pytest.approx(0.5**3)


def test_positions_count_from_the_cursor_and_a_begun_word_is_spelled_again():
    canvas = filled("retu")
    canvas.reopen(0)
    assert canvas.settled == 1
    assert canvas.spell == "u"
    assert canvas.confidence == pytest.approx(1.0)


def test_a_canvas_that_is_reopened_a_second_time_ends_there():
    canvas = filled()
    canvas.reopen(9)
    for token in (5, 7):
        canvas.settle(token, 0.5)
    canvas.reopen(6)
    assert canvas.ended
    assert VOCABULARY.spelled(canvas.ids) == "return"


def test_a_view_tells_committed_slots_from_masks():
    canvas = Canvas(VOCABULARY, [6] * 3, 0)
    canvas.settle(1, 0.25)
    views = canvas.view(None, 1)
    assert [(view.text, view.state, view.confidence) for view in views] == [
        ("ret", "committed", 0.25),
        ("", "mask", 0.0),
        ("", "mask", 0.0),
    ]


def test_a_view_shows_only_text_behind_the_cursor():
    canvas = Canvas(VOCABULARY, [1, 6, 6, 6], 1, "ur")
    canvas.settle(2, 0.5)
    canvas.settle(3, 0.5)
    assert [view.text for view in canvas.view(None, 3)] == ["n", " x", ""]


@pytest.mark.parametrize(("least", "slots"), [(0.0, 5), (0.5**5, 5), (0.5**3, 3), (0.4, 1), (0.6, 0)])
def test_sure_slots_together_reach_the_least_probability(least, slots):
    assert filled().sure_slots(least) == slots
