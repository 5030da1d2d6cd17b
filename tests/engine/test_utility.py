"""What a text is worth to someone who did not ask for it."""

import pytest
from mercury_engine.utility import FINISHED_CHARS, MIN_PROBABILITY, Utility, typed_characters


def test_a_text_is_worth_the_keys_it_saves_less_what_it_costs_when_wrong():
    assert Utility(wrong_cost=10).of(1.0, "abcdef", is_finished=False) == 5
    assert Utility(wrong_cost=10).of(0.5, "abcdef", is_finished=False) == 0.5 * 5 - 0.5 * 10


def test_a_finished_text_is_worth_more():
    of = Utility(wrong_cost=10).of
    assert of(1.0, "abcdef", is_finished=True) == of(1.0, "abcdef", is_finished=False) + FINISHED_CHARS


def test_what_saves_one_key_is_not_worth_a_look_however_sure():
    assert Utility().of(1.0, "ab", is_finished=True) < Utility().least
    assert Utility().of(1.0, "", is_finished=True) == 0


def test_a_stub_is_not_worth_showing_and_a_line_of_the_same_chance_is():
    assert Utility().of(0.7, "return", is_finished=False) < Utility().least
    assert Utility().of(0.7, "return self.total_price", is_finished=False) > Utility().least


def test_a_long_word_is_worth_showing_where_the_model_is_sure():
    assert Utility().of(0.95, "implementation", is_finished=False) > Utility().least


@pytest.mark.parametrize("length", [3, 12, 40])
def test_below_the_least_probability_no_text_of_that_length_is_worth_showing(length):
    utility = Utility(min_probability=0.0)
    probability = utility.least_probability(length)
    assert utility.of(probability, "x" * length, is_finished=True) == pytest.approx(utility.least)
    assert utility.of(probability - 0.01, "x" * length, is_finished=True) < utility.least


def test_the_longer_the_text_the_less_sure_it_has_to_be():
    probabilities = [Utility().least_probability(length) for length in range(60)]
    assert probabilities == sorted(probabilities, reverse=True)


def test_however_much_a_text_would_save_it_has_to_be_likely():
    text = "self.total += sum(value for value in values)"
    assert [Utility().is_enough(probability, text, is_finished=True) for probability in (0.39, 0.41)] == [False, True]
    assert Utility().least_probability(len(text)) == Utility().min_probability
    eager, quiet = (Utility().times(factor).min_probability for factor in (0.5, 2))
    assert eager < Utility().min_probability < quiet < 1
    assert Utility().times(0.1).min_probability == MIN_PROBABILITY


@pytest.mark.parametrize("values", [(float("nan"), 1.0, 0.5), (1.0, 1.0, 1.0), (1.0, 1.0, -0.1)])
def test_values_that_mean_nothing_are_refused(values):
    with pytest.raises(ValueError, match="must be"):
        Utility(*values)


def test_a_user_for_whom_errors_cost_more_sees_less():
    shown = [
        utility.is_enough(0.6, "self.total += value", is_finished=False)
        for utility in (Utility().times(0.5), Utility().times(2))
    ]
    assert shown == [True, False]


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("  x = 1  ", 5), ("\n    return x\n", 8), ("if a:\n        b()\n    c()", 13), ("\r\n  a\r\n", 1)],
)
def test_indents_and_blanks_at_the_end_are_not_typed(text, count):
    assert typed_characters(text) == count
