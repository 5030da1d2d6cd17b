"""How readily texts are shown: by what this user takes, and less often after refusals."""

import pytest
from mercury_engine.utility import Utility

from mercury_lsp.completion.price import (
    CALM_SECONDS,
    OF_EDITS,
    Price,
    least_probability_of_edit,
)
from mercury_lsp.documents.document import Edit

LOW, MEDIUM, HIGH = (Price().gate(Utility(), level, "python") for level in ("low", "medium", "high"))


def told(language: str, outcomes: list[bool]) -> Price:
    price = Price()
    for each in outcomes:
        price.learn(language, each)
    return price


def as_numbers(utility: Utility) -> tuple[float, float, float]:
    return utility.wrong_cost, utility.least, utility.min_probability


@pytest.mark.parametrize(("taken_of_ten", "end"), [(1, LOW), (7, HIGH)])
def test_a_hundred_suggestions_lead_from_the_middle_to_an_end_of_the_scale(taken_of_ten, end):
    outcomes = [index % 10 < taken_of_ten for index in range(100)]
    assert as_numbers(told("go", []).gate(Utility(), "auto", "go")) == as_numbers(MEDIUM)
    assert as_numbers(told("go", outcomes).gate(Utility(), "auto", "go")) == pytest.approx(as_numbers(end))
    halfway = told("go", outcomes[:20]).gate(Utility(), "auto", "go")
    assert min(end.wrong_cost, MEDIUM.wrong_cost) < halfway.wrong_cost < max(end.wrong_cost, MEDIUM.wrong_cost)


def test_each_language_has_its_own_share_and_fixed_levels_have_none():
    price = told("go", [False] * 100)
    assert price.gate(Utility(), "auto", "rust") == MEDIUM
    assert price.gate(Utility(), "high", "go") == HIGH


def test_three_refusals_in_half_a_minute_double_the_price_for_a_minute():
    now = 0.0
    price = Price(clock=lambda: now)
    for now in (0.0, 10.0, 20.0):  # noqa: B007
        assert price.gate(Utility(), "medium", "go") == MEDIUM
        price.refused()
    assert price.gate(Utility(), "medium", "go") == LOW
    assert "typed against" in price.explanation("medium", "go")
    now = 20.0 + CALM_SECONDS + 1
    assert price.gate(Utility(), "medium", "go") == MEDIUM


def test_the_user_is_told_what_the_level_comes_from():
    price = told("go", [True] * 70 + [False] * 30)
    assert price.explanation("auto", "go") == "you took 70 of the last 100 in go: about eagerness high"
    assert price.explanation("low", "go") == "the setting eagerness is low"


def test_an_edit_is_worth_showing_from_a_higher_probability_on_the_less_it_saves():
    low, medium, high = (Price().gate(OF_EDITS, level, "python") for level in ("low", "medium", "high"))
    old = "    return read(path)\n"
    short, long = Edit(0, old, old.replace("path", "paths")), Edit(0, old, old + "    close(path, when=later)\n" * 3)
    assert least_probability_of_edit(long, medium) == OF_EDITS.min_probability
    assert OF_EDITS.min_probability < least_probability_of_edit(short, medium) < 1
    assert least_probability_of_edit(short, high) < least_probability_of_edit(short, medium)
    assert least_probability_of_edit(long, medium) < least_probability_of_edit(long, low) <= 1
    removal = Edit(0, long.inserted, "")  # removed lines save keys, too
    assert least_probability_of_edit(removal, medium) == OF_EDITS.min_probability
