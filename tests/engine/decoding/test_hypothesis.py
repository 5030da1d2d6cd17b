"""Tokens are accepted, taken back where the text is wrong, and shown."""

import numpy as np
import pytest
from mercury_engine.api import FillRequest
from mercury_engine.decoding.hypothesis import Hypothesis, NextCharacters
from mercury_engine.models.row_answers import RowQuestion

from tests.support.asking import answered, rules_of

RULES = rules_of("", "ret", "urn", " x", " +", " y")


def written(begun: str = "") -> Hypothesis:
    """`return x + y`."""
    made = Hypothesis(RULES, FillRequest(""), [], 8, begun)
    for token in (1, 2, 3, 4, 5, 7):
        made.accept(token, 0.5)
    return made


def test_the_end_marker_ends_the_text_and_is_no_token_of_it():
    found = written()
    assert found.ended
    assert found.text() == "return x + y"
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
    assert found.text() == "return"


@pytest.mark.parametrize(("least", "tokens"), [(0.0, 6), (0.5**6, 6), (0.5**5, 5), (0.4, 1), (0.6, 0)])
def test_sure_tokens_together_reach_the_least_probability(least, tokens):
    assert written().sure_tokens(least) == tokens


def test_what_only_spells_the_text_before_the_cursor_leaves_it_to_the_next_token() -> None:
    texts = ["pa", "path", "pat", "pack", "(", " ="]
    found, question = NextCharacters(texts), RowQuestion.of([None], len(texts), draws=True)
    for spell, chances in (("pa", (0.5, 0.2, 0.1, 0.02, 0.1, 0.08)), ("", (0.01, 0.01, 0.01, 0.01, 0.9, 0.06))):
        assert not found.is_known
        found.add(spell, answered(np.log(np.array([chances], np.float32)), question))
    assert found.is_known
    assert found.likeliest() == ("(", "t"), "c and the blank are not likely enough"
