"""Tokens are accepted, taken back where the text is wrong, and shown."""

import math

import pytest
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.vocabulary import Vocabulary
from mercury_engine.errors import ModelCorrupt

VOCABULARY = Vocabulary(["", "ret", "urn", " x", " +", " y"], mask_id=6, end_id=7)


def written(begun: str = "") -> Hypothesis:
    """`return x + y`."""
    made = Hypothesis(VOCABULARY, [], 8, begun)
    for token in (1, 2, 3, 4, 5, 7):
        made.accept(token, 0.5)
    return made


def test_the_end_marker_ends_the_text_and_is_no_token_of_it():
    found = written()
    assert found.ended
    assert VOCABULARY.spelled(found.ids) == "return x + y"
    assert found.confidence == pytest.approx(0.5**6)


def test_forced_spelling_costs_no_confidence():
    assert written("retu").confidence == pytest.approx(0.5**5)
    assert written("return").confidence == pytest.approx(0.5**4)


def test_tokens_from_a_wrong_character_on_are_taken_back_and_the_first_is_banned():
    found = written()
    found.reopen(9)
    assert not found.ended
    assert found.ids == [1, 2, 3]
    assert found.banned == {3: 4}
    assert found.confidence == pytest.approx(0.5**3)


def test_positions_count_from_the_cursor_and_a_begun_word_is_spelled_again():
    found = written("retu")
    found.reopen(0)
    assert (found.ids, found.spell) == ([1], "u")
    assert found.confidence == pytest.approx(1.0)


def test_a_hypothesis_that_is_reopened_a_second_time_ends_there():
    found = written()
    found.reopen(9)
    for token in (5, 7):
        found.accept(token, 0.5)
    found.reopen(6)
    assert found.ended
    assert VOCABULARY.spelled(found.ids) == "return"


def test_a_view_shows_only_text_after_the_cursor():
    found = Hypothesis(VOCABULARY, [1], 4, "ur")
    found.accept(2, 0.5)
    found.accept(3, 0.25)
    assert [(view.text, view.state, view.confidence) for view in found.view()] == [
        ("n", "committed", 0.5),
        (" x", "committed", 0.25),
    ]


def test_only_the_first_token_with_nothing_to_spell_takes_a_rank():
    found = Hypothesis(VOCABULARY, [], 4, "ret", rank=2)
    assert found.take_rank() == 0
    found.accept(1, 0.5)
    assert [found.take_rank(), found.take_rank()] == [2, 0]


def test_weights_that_compute_nan_are_reported():
    with pytest.raises(ModelCorrupt, match="weights compute NaN"):
        written().accept(3, math.nan)


@pytest.mark.parametrize(("least", "tokens"), [(0.0, 5), (0.5**5, 5), (0.5**3, 3), (0.4, 1), (0.6, 0)])
def test_sure_tokens_together_reach_the_least_probability(least, tokens):
    assert written().sure_tokens(least) == tokens
