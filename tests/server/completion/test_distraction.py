"""Texts that nobody asked for and that are not shown, one rule at a time."""

import pytest
from mercury_engine.utility import Utility

from mercury_lsp.completion import silence
from mercury_lsp.completion.silence import why_silent
from mercury_lsp.context.context import CompletionContext, ContextBuilder
from mercury_lsp.documents.document import Document


def context(marked: str, language_id: str = "python") -> CompletionContext:
    """The context of a cursor at the bar."""
    before, after = marked.split("|")
    snapshot = Document("file:///a", language_id, 1, before + after).snapshot()
    return ContextBuilder().build(snapshot, len(before), None)


@pytest.mark.parametrize(
    ("marked", "text", "breaks"),
    [
        ("price_in_cents = 1\nprint(pri|ts)\n", "ce_in_cen", False),
        ("class Level:\n    normal = 1\nx = Lev|mal\n", "el.nor", False),
        ("price_in_cents = 1\nprint(pri|ts)\n", "ce_in_cents(0", True),
        ("def close|accounts():\n    pass\n", "():", True),
        ("def close|accounts():\n    pass\n", "_all_", True),
        ("x = y| + 1\n", "ear", False),
        ("x = |year + 1\n", "last_", False),
    ],
)
def test_a_text_inside_a_word_has_to_make_a_known_word_of_it(marked, text, breaks):
    assert silence.breaks_a_word(text, context(marked)) == breaks


@pytest.mark.parametrize(
    ("marked", "text", "runs"),
    [
        ("await |door.close(1)\n", "door.close(1)", True),
        ("x = |rows\n", "left[0]", True),
        ("x = |rows\n", "left[0] + ", False),
        ("x = |(rows)\n", "sorted", False),
        ("x = |.first\n", "f()", False),
        ("x = |\n", "f()", False),
    ],
)
def test_a_closed_bracket_stands_before_no_word(marked, text, runs):
    assert silence.runs_into_the_rest(text, context(marked)) == runs


@pytest.mark.parametrize(
    ("marked", "text", "repeats"),
    [
        ("found = rows.li|.limit(10)\n", "mit", True),
        ("found = rows.li|.limit(10)\n", "mit(10).all()", True),
        ("found = rows.li|mit(10)\n", "mit + rows.li", True),
        ("found = rows.|limit(10)\n", "first().limit(10)", True),
        ("found = rows.li|.offset(10)\n", "mit(5)", False),
        ("found = rows.li|\n", "mit(10)", False),
        ("found = f(li|)\n", "mit", False),
    ],
)
def test_a_text_does_not_repeat_the_rest_of_the_line(marked, text, repeats):
    assert silence.repeats_the_rest(text, context(marked)) == repeats


@pytest.mark.parametrize(
    ("marked", "text", "language_id", "is_open"),
    [
        ("x = |\n", '"left', "python", True),
        ('x = "|\n', "left", "python", False),
        ('x = "|"\n', "left", "python", False),
        ('x = "a|\n', '" + "b', "python", True),
        ("x = |\n", '"left"', "python", False),
        ("x = |\n", "point(1", "python", False),
        ("x = |\n", "`left ${right}", "javascript", False),
        ("def f():\n    |\n", '"""Several lines follow.', "python", False),
        ("# |\n", 'say "please', "python", False),
        ("let x: |\n", "&'a str", "rust", False),
    ],
)
def test_a_string_is_not_left_open(marked, text, language_id, is_open):
    assert silence.leaves_a_string_open(text, context(marked, language_id)) == is_open


@pytest.mark.parametrize(
    ("marked", "text", "unbalances"),
    [
        ("while (th| && ready);\n", "is.waiting.length) {", True),
        ("while (th| && ready);\n", "is.waiting.length", False),
        ("f(|);\n", "g(x)", False),
        ("f(|);\n", "g(x", True),
        ("f(|;\n", "x)", False),
        ("f(|\n", "function () {", False),
    ],
)
def test_brackets_match_the_rest_of_the_line(marked, text, unbalances):
    assert silence.unbalances_the_line(text, context(marked, "javascript")) == unbalances


@pytest.mark.parametrize(
    ("marked", "text", "stands"),
    [
        ("this|\nlog(job)\nthis.running++;\n", ".running++;", True),
        ("this|\nlog(job)\nthis.running--;\n", ".running++;", False),
        ("x +|\nx += 1\n", "= 1", False),
        ("this|\n" + "a\n" * 5 + "this.running++;\n", ".running++;", False),
    ],
)
def test_a_line_that_stands_below_is_not_shown_twice(marked, text, stands):
    assert silence.stands_below(text, context(marked, "javascript")) == stands


@pytest.mark.parametrize(
    ("marked", "text", "language_id"),
    [
        ("x = 1\n|\n", "# Your code here", "python"),
        ("x = 1\n# Test |\n", "the function", "python"),
        ("a();\n|\n", "// Add your code here", "javascript"),
        ("x = 1\n|\n", "# Example usage:", "python"),
    ],
)
def test_a_stock_comment_is_shown_only_if_the_model_is_sure(marked, text, language_id):
    found, eager = context(marked, language_id), Utility(0.0, 0.0, 0.0)
    assert "stock comment" in str(why_silent(text, 0.24, True, found, eager))
    assert why_silent(text, 0.26, True, found, eager) is None
