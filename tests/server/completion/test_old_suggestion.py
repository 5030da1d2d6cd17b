"""The part of a suggestion that still fits after the user typed something different."""

import pytest

from mercury_lsp.completion.old_suggestion import old_suggestion, remaining
from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.completion.typing_through import SuggestionAnchor
from mercury_lsp.documents.document import Document


@pytest.mark.parametrize(
    ("suggested", "typed", "expected"),
    [
        ("compute(x, y)", "compute(a", ", y)"),
        ("compute(x, y)", "consume(", "x, y)"),
        ("x = foo(b, c)", "x = bar(b, ", "c)"),
        ("self.items = items", "self.items += ", "items"),
        ("first, second, third)", "second", ", third)"),
        ("first, second, third)", "sec", "ond, third)"),
        ("for a in items:\n    print(a)", "for b in items:\n", "    print(a)"),
        ("for a in items:\n    print(a)", "for key in items:", "\n    print(a)"),
    ],
)
def test_the_part_of_a_suggestion_that_may_still_fit_remains(suggested: str, typed: str, expected: str):
    assert remaining(suggested, typed) == expected


@pytest.mark.parametrize(
    ("suggested", "typed"),
    [
        ("compute(x, y)", "comp"),
        ("compute(x)", "compute(x) + 1"),
        ("compute(x, y)", "yield"),
        ("compute(x, y)", "["),
        ("return x", "return y"),
        ("width = self.width", "height"),
        ("compute(x, y)", "compute(" + "a + " * 30),
    ],
    ids=[
        "its start",
        "all of it",
        "other word",
        "other punctuation",
        "nothing left",
        "nothing of it",
        "much else",
    ],
)
def test_nothing_remains_of_a_suggestion_typed_through_or_abandoned(suggested: str, typed: str):
    assert remaining(suggested, typed) == ""


def test_an_old_suggestion_counts_only_where_its_typed_text_ends():
    suggestion = Suggestion("1", "compute(x, y)", (0, 4), (0, 4), 0.9, 1, 1.0)
    snapshot = Document("file:///sample.py", "plaintext", 1, "x = compute(a").snapshot()
    assert old_suggestion(SuggestionAnchor(4, 13, suggestion), snapshot, 13) == ", y)"
    assert old_suggestion(SuggestionAnchor(4, 12, suggestion), snapshot, 13) == ""
    assert old_suggestion(SuggestionAnchor(4, 13), snapshot, 13) == ""
    assert old_suggestion(None, snapshot, 13) == ""
