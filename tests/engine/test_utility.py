"""What a text is worth to someone who did not ask for it."""

import pytest
from mercury_engine.utility import Utility, typed_characters


def test_a_text_is_worth_the_keys_it_saves_less_what_it_costs_when_wrong():
    assert Utility(wrong_cost=10).of(1.0, "abcdef", is_finished=False) == 5
    assert Utility(wrong_cost=10).of(0.5, "abcdef", is_finished=False) == 0.5 * 5 - 0.5 * 10


def test_what_saves_one_key_is_not_worth_a_look_however_sure():
    assert Utility().of(1.0, "ab", is_finished=True) < Utility().least
    assert Utility().of(1.0, "", is_finished=True) == 0


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
