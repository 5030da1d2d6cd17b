"""Tokens are accepted, taken back where the text is wrong, and shown."""

import pytest
from mercury_engine.decoding.hypothesis import Hypothesis, Vocabulary

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


def test_tokens_from_a_wrong_character_on_are_taken_back_and_the_first_is_banned():
    found = written()
    found.reopen(9)
    assert not found.ended
    assert found.ids == [1, 2, 3]
    assert found.banned == {3: 4}
    assert found.confidence == pytest.approx(0.5**3)


def test_a_hypothesis_that_is_reopened_a_second_time_ends_there():
    found = written()
    found.reopen(9)
    for token in (5, 7):
        found.accept(token, 0.5)
    found.reopen(6)
    assert found.ended
    assert VOCABULARY.spelled(found.ids) == "return"


@pytest.mark.parametrize(("least", "tokens"), [(0.0, 6), (0.5**6, 6), (0.5**5, 5), (0.4, 1), (0.6, 0)])
def test_sure_tokens_together_reach_the_least_probability(least, tokens):
    assert written().sure_tokens(least) == tokens
