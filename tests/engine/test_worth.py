"""What a text is worth to someone who did not ask for it."""

import pytest
from mercury_engine.worth import FINISHED_CHARS, Worth, typed_characters


def test_a_text_is_worth_the_keys_it_saves_less_what_it_costs_when_wrong():
    assert Worth(wrong_cost=10).of(1.0, "abcdef", is_finished=False) == 5
    assert Worth(wrong_cost=10).of(0.5, "abcdef", is_finished=False) == 0.5 * 5 - 0.5 * 10


def test_a_finished_text_is_worth_more():
    of = Worth(wrong_cost=10).of
    assert of(1.0, "abcdef", is_finished=True) == of(1.0, "abcdef", is_finished=False) + FINISHED_CHARS


def test_what_saves_one_key_is_not_worth_a_look_however_sure():
    assert Worth().of(1.0, "ab", is_finished=True) < Worth().least
    assert Worth().of(1.0, "", is_finished=True) == 0


def test_a_stub_is_not_worth_showing_and_a_line_of_the_same_chance_is():
    assert Worth().of(0.7, "return", is_finished=False) < Worth().least
    assert Worth().of(0.7, "return self.total", is_finished=False) > Worth().least


def test_a_long_word_is_worth_showing_where_the_model_is_sure():
    assert Worth().of(0.95, "implements", is_finished=False) > Worth().least


@pytest.mark.parametrize("length", [3, 12, 40])
def test_below_the_least_probability_no_text_of_that_length_is_worth_showing(length):
    worth = Worth()
    chance = worth.least_probability(length)
    assert worth.of(chance, "x" * length, is_finished=True) == pytest.approx(worth.least)
    assert worth.of(chance - 0.01, "x" * length, is_finished=True) < worth.least


def test_the_longer_the_text_the_less_sure_it_has_to_be():
    chances = [Worth().least_probability(length) for length in range(60)]
    assert chances == sorted(chances, reverse=True)


def test_a_user_for_whom_errors_cost_more_sees_less():
    shown = [
        worth.of(0.7, "self.total += value", is_finished=False) >= worth.least
        for worth in (Worth().times(0.5), Worth().times(2))
    ]
    assert shown == [True, False]


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("  x = 1  ", 5), ("\n    return x\n", 8), ("if a:\n        b()\n    c()", 13), ("\r\n  a\r\n", 1)],
)
def test_indents_and_blanks_at_the_end_are_not_typed(text, count):
    assert typed_characters(text) == count
