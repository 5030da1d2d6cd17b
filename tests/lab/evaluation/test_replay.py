"""A perfect user's accounts, by hand-made examples with a model that says what it is told to."""

from pathlib import Path

import pytest
from mercury_engine.api import Fill, FillRequest
from mercury_engine.utility import Utility
from mercury_lab.evaluation.gaps import Gap, HeldOutFile
from mercury_lab.evaluation.judge import accepted, fitted
from mercury_lab.evaluation.replay import ReplayedLine, Tally, figures, replay_levels, type_line

TEXT = "def add(left, right):\n    total = left + right\n    return total\n"
TRUTH = "total = left + right"


class Scripted:
    """Answers by what is still to be typed; silent where it has no answer. Remembers every request."""

    def __init__(self, answers: dict[str, str], confidence: float = 0.9) -> None:
        self.answers, self.confidence = answers, confidence
        self.asked: list[Gap] = []

    def __call__(self, gap: Gap) -> Fill:
        self.asked.append(gap)
        return Fill(self.answers.get(gap.truth, ""), self.confidence, steps=1, elapsed=0.25)


def line(text: str = TEXT, truth: str = TRUTH) -> ReplayedLine:
    document = HeldOutFile(Path("a.py"), "toy/a.py", "python", text)
    return ReplayedLine(document, text.index(truth), text.index(truth) + len(truth))


ANYTHING = Utility(0.0, 0.0, 0.0)
"""Shows every text."""


def typed(model: Scripted, utility: Utility = ANYTHING) -> Tally:
    return type_line(line(), model, utility)


def test_a_line_that_is_right_to_its_end_costs_one_request():
    tally = typed(Scripted({TRUTH: TRUTH}))
    assert (tally.requests, tally.shown, tally.right, tally.accepted) == (1, 1, 1, 1)
    assert tally.written == tally.characters == len(TRUTH)
    assert figures(tally)["written_by_accepting"] == 1.0
    assert figures(tally)["keystrokes_saved"] == 0.95
    assert figures(tally)["ms_p50"] == 250.0


def test_a_silent_model_is_asked_at_every_keystroke():
    tally = typed(Scripted({}))
    assert (tally.requests, tally.shown, tally.written) == (len(TRUTH), 0, 0)
    assert (figures(tally)["shown_rate"], figures(tally)["precision"]) == (0.0, None)


def test_the_longest_right_prefix_of_whole_words_is_taken_and_typing_goes_on_behind_it():
    model = Scripted({TRUTH: "total = left - 1"})
    tally = typed(model)
    assert (tally.written, tally.accepted, tally.shown, tally.right) == (len("total = left "), 1, 1, 0)
    # "- 1" stays in sight until "+" is typed; from there every keystroke asks again
    assert [gap.truth for gap in model.asked] == [TRUTH, " right", "right", "ight", "ght", "ht", "t"]


def test_a_suggestion_typed_along_needs_no_further_request():
    model = Scripted({TRUTH: "tot"})
    tally = typed(model)
    assert tally.accepted == 0
    assert [len(gap.truth) for gap in model.asked] == [20, *range(17, 0, -1)]


def test_a_suggestion_that_is_not_worth_showing_is_not_shown():
    unsure, strict, eager = Scripted({TRUTH: TRUTH}, confidence=0.4), Utility(10.0, 4.0, 0.3), Utility(5.0, 4.0, 0.3)
    assert typed(unsure, strict).shown == 0
    assert typed(unsure, eager).written == len(TRUTH)
    assert {gap.request.utility for gap in unsure.asked} == {strict, eager}


def test_a_text_that_is_taken_in_part_is_rewarded_and_one_that_is_not_costs():
    taken, refused = figures(typed(Scripted({TRUTH: "total = left - 1"}))), figures(typed(Scripted({TRUTH: "count"})))
    assert (taken["not_taken_per_100"], taken["reward_per_100"]) == (0.0, 0.75 * 100 / len(TRUTH))
    assert (refused["not_taken_per_100"], refused["reward_per_100"]) == (5.0, -0.25 * 100 / len(TRUTH))


def test_levels_type_the_same_lines_and_auto_learns_from_what_is_taken():
    model = Scripted({TRUTH: TRUTH}, confidence=0.55)
    record = replay_levels([line()] * 60, model, Utility(), [Utility(12.0, 10.0, 0.7)])
    shown = {name: row["shown"] for name, row in record.items()}
    assert shown == {"12, 10, 0.7": 0, "low": 0, "medium": 60, "high": 60, "auto": 60}
    asked = [gap.request.utility.wrong_cost for gap in model.asked if gap.truth == TRUTH][4::5]
    assert asked[0] == Utility().wrong_cost > asked[-1]


@pytest.mark.parametrize(
    ("suggestion", "rest", "taken"),
    [
        ("x)", "x)", "x)"),
        (")", ")", ")"),
        ("x)  \n    pass", "x)", "x)"),
        ("self.names", "self.name = 1", "self."),
        ("self.name", "self.names = 1", "self."),
        ("nam", "names", ""),
        ("(y)", "(x)", ""),
        ("l, value", "l, key", "l, "),
        ("value)", "value", "value"),
        ("value", "value)", "value"),
        ("", "value", ""),
        ("\n    pass", "value", ""),
    ],
)
def test_what_a_perfect_user_takes(suggestion, rest, taken):
    assert accepted(suggestion, rest) == taken


@pytest.mark.parametrize(
    ("near", "text", "suffix", "kept"),
    [
        ("call(", "x, key=1)", "key=1)\n", "x, "),
        ("call(", "x)", ")\n", "x"),
        ("call(", "make()", ")\n", "make()"),
        ("call(a(", "x)", ")\n", "x)"),
        ("if x", " > 1:", ":\n", " > 1"),
        ("    ", "a = 1\n    b = 2\n    c = 3", "\n    b = 2\n", "a = 1"),
        ("    ", "b = 2", "\n\n    b = 2\n", ""),
        ("    ", "a = 1\n}", "\n}\n", "a = 1\n}"),
        ("x = ", "1", "", "1"),
    ],
)
def test_a_fill_is_cut_where_it_repeats_what_follows(near, text, suffix, kept):
    assert fitted(text, FillRequest(near=near, suffix=(suffix,))) == kept
