"""Brackets and strings are found by their characters, with two rules for strings."""

import pytest
from mercury_engine.text.brackets import code_outside_strings, has_open_bracket


@pytest.mark.parametrize(
    ("text", "quotes", "quote", "outside", "left_open"),
    [
        ('f("a(b")', "\"'", "", "f()", ""),
        ('f("a', "\"'", "", "f(", '"'),
        ('b") + c', "\"'", '"', ") + c", ""),
        (r'f("\"", \()', "\"'", "", "f(, )", ""),
        ("it's", '"', "", "it's", ""),
    ],
)
def test_code_outside_strings_leaves_out_quotes_escapes_and_what_they_enclose(text, quotes, quote, outside, left_open):
    positions, open_quote = code_outside_strings(text, quotes, quote)
    assert ("".join(text[at] for at in positions), open_quote) == (outside, left_open)


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("", False),
        ("f(", True),
        ("f(x[0])", False),
        ("f(x[", True),
        ("())", False),
        (")(", True),
        ("{a: (b", True),
        ("(]", False),
        ('f("(")', False),
        ('f(")', True),
        ("# don't (", True),
        ('"(" + (', True),
        ('"\\"(" ', False),
    ],
)
def test_strings_are_skipped_for_the_end_of_a_fill(text, is_open):
    assert has_open_bracket(text) == is_open
